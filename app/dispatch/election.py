"""Who schedules: a session-level advisory lock in Postgres. A dead scheduler's session ends, and the lock with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import asyncpg
import structlog

from app.errors import UnavailableError

log = structlog.get_logger()

LOCK = 0x62616E647761  # "bandwa"
ANSWER_S = 5.0
SILENT_S = 12.0
"""The elected one saves its walk every 4 s at least. One that is frozen keeps its session, and so the lock: it is ended."""
_HOLDS = """
l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.database = (
    SELECT oid FROM pg_database WHERE datname = current_database()
  )
  AND (l.classid::bigint << 32) + l.objid::bigint = $1
"""
_END_SILENT = f"""
SELECT count(pg_terminate_backend(l.pid)) FROM pg_locks l, schedule_mark m
WHERE {_HOLDS} AND m.saved_at < now() - make_interval(secs => $2)
"""  # noqa: S608 - constants
_END_OWN = f"SELECT count(pg_terminate_backend(l.pid)) FROM pg_locks l WHERE {_HOLDS} AND l.pid = $2"  # noqa: S608 - constants
LOST = (UnavailableError, OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What a session shows that has ended; the last one, when it is asked in the moment in which it ends."""


@dataclass(slots=True, kw_only=True)
class Election:
    """Holds the lock on a connection of its own (not through a transaction-pooling proxy)."""

    connect: Callable[[], Awaitable[asyncpg.Connection]]
    _connection: asyncpg.Connection | None = None
    _held: bool = False
    _own: int | None = None
    """The backend that had the lock for this one. When the network swallowed the session's end, the server keeps it."""

    async def elected(self) -> bool:
        """True while this process holds the lock; tries for it otherwise. False, never an error, when the database is away."""
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._ask()
        except LOST as error:
            if self._held:
                log.warning("election_lost", error=str(error))
            await self.resign()
            return False

    async def _ask(self) -> bool:
        if self._connection is None or self._connection.is_closed():
            self._held = False
            self._connection = await self.connect()
        if self._held:
            await self._connection.execute("SELECT 1")
        else:
            own, self._own = self._own, None
            if own is not None and await self._connection.fetchval(_END_OWN, LOCK, own):
                log.warning("election_of_a_lost_session_ended")
            self._held = bool(await self._connection.fetchval("SELECT pg_try_advisory_lock($1)", LOCK))
            if self._held:
                self._own = self._connection.get_server_pid()
            elif ended := await self._connection.fetchval(_END_SILENT, LOCK, SILENT_S):
                log.warning("election_of_a_silent_scheduler_ended", sessions=ended)
        return self._held

    async def resign(self) -> None:
        """Give the lock up at once."""
        connection, self._connection, self._held = self._connection, None, False
        if connection is not None:
            connection.terminate()
