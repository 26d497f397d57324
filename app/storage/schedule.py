"""How far the grid has been walked; shared by all schedulers, kept over restarts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from app.storage import tables
from app.storage.database import Database
from app.storage.ticks import count_ticks
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
        async with self.database.read() as connection:
            row = (await connection.execute(select(m.c.at, m.c["keys"].label("known"), m.c.high, m.c.turn))).first()
        return None if row is None else Walk(at=row.at, keys=frozenset(row.known), high=row.high, turn=row.turn)

    async def save(self, walk: Walk, *, missed: int = 0) -> None:
        """Remember it, and count the ticks that it passed and that will never run, in one transaction."""
        values = {"at": walk.at, "keys": sorted(walk.keys), "high": walk.high, "turn": walk.turn}
        statement = insert(tables.schedule_mark).values(one=True, **values)
        async with self.database.write() as connection:
            await connection.execute(statement.on_conflict_do_update(index_elements=["one"], set_=values))
            if missed:
                await count_ticks(connection, "missed", missed)

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
