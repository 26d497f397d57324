"""PgQueuer's way to Postgres, that a dead connection holds up for seconds and not for good.

A connection whose other end has gone without a word (a firewall that lost its table, a machine that lost its power) swallows
what it is told. Whatever is asked here has `ANSWER_S`; the connection that did not answer is cut off, not asked to close.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncpg
from asyncpg.pool import PoolConnectionProxy
from pgqueuer import AsyncpgPoolDriver

ANSWER_S = 8.0
"""The queue's statements take milliseconds."""
CONNECT_S = 5.0
CLOSE_S = 2.0
POOL = (1, 6)
T = TypeVar("T")


@asynccontextmanager
async def pool_of(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    """A pool for the queue, closed within `CLOSE_S` whatever its connections say."""
    pool = await asyncpg.create_pool(dsn, min_size=POOL[0], max_size=POOL[1], timeout=CONNECT_S, command_timeout=ANSWER_S)
    try:
        yield pool
    finally:
        try:
            async with asyncio.timeout(CLOSE_S):
                await pool.close()
        except TimeoutError:
            pool.terminate()


class QueueDriver(AsyncpgPoolDriver):
    """PgQueuer's driver over a pool, with an end to every wait.

    Raises:
        TimeoutError: there was no answer.
    """

    async def fetch(self, query: str, *args: object) -> list[dict[str, object]]:
        """The rows of a query."""
        rows = await self._ask(lambda connection: connection.fetch(query, *args))
        return [dict(row) for row in rows]

    async def execute(self, query: str, *args: object) -> str:
        """The status of a command."""
        return await self._ask(lambda connection: connection.execute(query, *args))

    async def _ask(self, question: Callable[[PoolConnectionProxy], Awaitable[T]]) -> T:
        connection = await self._pool.acquire(timeout=ANSWER_S)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await question(connection)
        except TimeoutError:
            connection.terminate()
            await self._pool.expire_connections()  # the others may be dead just the same
            raise
        except asyncio.CancelledError:
            connection.terminate()
            raise
        finally:
            await self._pool.release(connection)

    async def __aexit__(self, *_: object) -> None:
        """Cut the connection that listens off: asked to stop listening, a dead one would hold up the end."""
        listening, self._listener_connection = self._listener_connection, None
        if listening is not None:
            listening.terminate()
            await self._pool.release(listening)
