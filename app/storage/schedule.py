"""How far the grid has been walked; shared by all schedulers, kept over restarts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, false, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from app.storage import tables
from app.storage.database import QUICK_S, Database
from app.storage.rollups import roll_back
from app.storage.ticks import count_missed
from app.targets.grid import Walk
from app.verdict.outbox import DeliveryState

LEASE = timedelta(seconds=60)
"""Longer than a courier's lease, shorter than anybody wants to wait for a dead one's."""
_QUEUE = text("""
UPDATE pgqueuer SET heartbeat = least(heartbeat, now()), updated = least(updated, now()),
  execute_after = CASE WHEN status = 'queued' THEN least(execute_after, now() + interval '30 s') ELSE execute_after END
WHERE heartbeat > now() + interval '5 s' OR (status = 'queued' AND execute_after > now() + interval '60 s')
""")
"""By the database's own clock, which may be another machine's and never have gone back. No job waits for more than 30 s."""


@dataclass(slots=True, kw_only=True)
class ScheduleMark:
    """One row."""

    database: Database

    async def load(self) -> Walk | None:
        """The last one saved; None before the first."""
        m = tables.schedule_mark
        async with self.database.read(within_s=QUICK_S) as connection:
            row = (await connection.execute(select(m.c.at, m.c["keys"].label("known"), m.c.high, m.c.turn))).first()
        return None if row is None else Walk(at=row.at, keys=frozenset(row.known), high=row.high, turn=row.turn)

    async def save(
        self,
        walk: Walk,
        *,
        over: Walk | None,
        missed: int = 0,
        within: Callable[[Any], Awaitable[object]] | None = None,
    ) -> bool:
        """Remember it, count the ticks that it passed and that will never run, and do what is to be done `within` the same
        transaction, on asyncpg's connection. False: what is remembered is not what the caller knew (`over`), for somebody
        else walks; then nothing is done.
        """
        m = tables.schedule_mark
        values = {"at": walk.at, "keys": sorted(walk.keys), "high": walk.high, "turn": walk.turn}
        changed = {**values, "saved_at": func.now()}
        as_known = false() if over is None else and_(m.c.at == over.at, m.c.turn == over.turn)
        statement = insert(m).values(one=True, **values)
        statement = statement.on_conflict_do_update(index_elements=["one"], set_=changed, where=as_known)
        async with self.database.write() as connection:
            if (await connection.execute(statement.returning(m.c.one))).first() is None:
                return False
            if missed:
                await count_missed(connection, missed)
            if within is not None:
                await within((await connection.get_raw_connection()).driver_connection)
            return True

    async def set_back(self, now: datetime) -> None:
        """The clock was set back to `now`. What was made before, and waits for an instant that was near, would wait until it
        comes again: announcements are tried at once, leases and jobs of the dead end soon, nobody counts as heard of later.
        """
        o, p = tables.outbox, tables.processes
        pending = o.c.state == DeliveryState.PENDING
        async with self.database.write() as connection:
            await connection.execute(update(o).where(pending, o.c.created_at > now, o.c.next_at > now).values(next_at=now))
            await connection.execute(
                update(o)
                .where(pending, o.c.leased_until > now + LEASE)
                .values(leased_until=func.least(o.c.leased_until, now + LEASE))
            )
            await connection.execute(update(p).where(p.c.beat_at > now).values(beat_at=now))
            await connection.execute(_QUEUE)
            await roll_back(connection, now)
