"""Day partitions of `runs`: made a week ahead, dropped (never deleted from) at the end of retention."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.database import Database

log = structlog.get_logger()

AHEAD_DAYS = 7
_NAME = re.compile(r"runs_(\d{4})(\d{2})(\d{2})")


def name_of(day: date) -> str:
    """The partition of a UTC day."""
    return f"runs_{day:%Y%m%d}"


async def days(connection: AsyncConnection) -> list[date]:
    """The days that have a partition, oldest first."""
    rows = await connection.execute(
        text("SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'runs'::regclass")
    )
    found = [_NAME.fullmatch(name) for (name,) in rows]
    return sorted(date(int(m[1]), int(m[2]), int(m[3])) for m in found if m)


async def create_ahead(database: Database, *, now: datetime) -> int:
    """Make the partitions of yesterday to a week ahead that are missing; returns how many days ahead there are now.

    One statement a transaction with a short lock time-out: a reader that holds the table makes this try again later
    instead of making every insert wait behind it.
    """
    today = now.astimezone(UTC).date()
    async with database.read() as connection:
        there = set(await days(connection))
    for offset in range(-1, AHEAD_DAYS + 1):
        if (day := today + timedelta(days=offset)) not in there:
            await create(database, day)
            there.add(day)
    return ahead(sorted(there), now=now)


async def create(database: Database, day: date) -> None:
    """Make one day's partition; nothing happens when it is there."""
    async with database.write() as connection:
        await connection.execute(text("SET LOCAL lock_timeout = '2s'"))
        await connection.execute(
            text(
                f"CREATE TABLE IF NOT EXISTS {name_of(day)} PARTITION OF runs "
                f"FOR VALUES FROM ('{day} 00:00+00') TO ('{day + timedelta(days=1)} 00:00+00')"
            )
        )


def ahead(there: list[date], *, now: datetime) -> int:
    """How many whole days from tomorrow on have a partition without a hole."""
    today = now.astimezone(UTC).date()
    count = 0
    while today + timedelta(days=count + 1) in there:
        count += 1
    return count


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


async def drop_before(database: Database, limit: datetime) -> list[date]:
    """Drop the partitions that hold only runs due before `limit`; returns their days.

    Detached concurrently first, outside of a transaction, so that nobody's insert waits behind a long reader.
    """
    async with database.read() as connection:
        old = [day for day in await days(connection) if _midnight(day) + timedelta(days=1) <= limit]
    for day in old:
        raw = await database.connect_raw()
        try:
            await raw.execute("SET lock_timeout = '5s'")
            await raw.execute(f"ALTER TABLE runs DETACH PARTITION {name_of(day)} CONCURRENTLY", timeout=60)
            await raw.execute(f"DROP TABLE {name_of(day)}")
        finally:
            await raw.close(timeout=5)
        log.info("partition_dropped", day=day.isoformat())
    return old
