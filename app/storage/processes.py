"""Heartbeats: what each process last said of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from app.storage import tables
from app.storage.database import QUICK_S, Database

FRESH = timedelta(seconds=30)
"""A process that has not been heard of for this long counts as gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One process as it last reported."""

    instance: str
    role: str
    location: str
    started_at: datetime
    beat_at: datetime
    stats: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Processes:
    """Who is alive."""

    database: Database

    async def beat(
        self, *, instance: str, role: str, location: str, started_at: datetime, now: datetime, stats: Mapping[str, Any]
    ) -> None:
        """Say that a process lives, and how it does."""
        p = tables.processes
        values = {"role": role, "location": location, "started_at": started_at, "beat_at": now, "stats": dict(stats)}
        statement = insert(p).values(instance=instance, **values)
        async with self.database.write() as connection:
            await connection.execute(statement.on_conflict_do_update(index_elements=["instance"], set_=values))

    async def alive(self, *, now: datetime) -> tuple[Beat, ...]:
        """The processes heard of lately."""
        p = tables.processes
        async with self.database.read(within_s=QUICK_S) as connection:
            rows = (await connection.execute(select(p).where(p.c.beat_at > now - FRESH).order_by(p.c.instance))).all()
        return tuple(
            Beat(
                instance=row.instance,
                role=row.role,
                location=row.location,
                started_at=row.started_at,
                beat_at=row.beat_at,
                stats=row.stats,
            )
            for row in rows
        )

    async def forget(self, *, instance: str) -> None:
        """A process stops in order."""
        async with self.database.write() as connection:
            await connection.execute(tables.processes.delete().where(tables.processes.c.instance == instance))
