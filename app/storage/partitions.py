"""Day partitions of `runs`: made a week ahead, dropped (never deleted from) at the end of retention."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import asyncpg
import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.database import Database

log = structlog.get_logger()

AHEAD_DAYS = 7
LOCK = 0x62616E64706172  # "bandpar"
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
    """Make one day's partition; nothing happens when it is there.

    Made apart and then attached, which lets readers and inserts go on; `CREATE TABLE … PARTITION OF` would wait for every
    reader, and every insert would wait behind it.
    """
    name = name_of(day)
    async with database.write() as connection:
        await connection.execute(text("SET LOCAL lock_timeout = '2s'"))
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        if (await connection.execute(text("SELECT to_regclass(:name)"), {"name": name})).scalar_one() is not None:
            return
        await connection.execute(text(f"CREATE TABLE {name} (LIKE runs INCLUDING ALL)"))
        await connection.execute(
            text(
                f"ALTER TABLE runs ATTACH PARTITION {name} "
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


async def drop_before(database: Database, limit: datetime, *, patience_s: float = 5.0) -> list[date]:
    """Drop the partitions that hold only runs due before `limit`; returns their days.

    Detached concurrently first, outside of a transaction, so that nobody's insert waits behind a long reader. What was
    interrupted halfway is finished. A day that cannot be dropped within `patience_s` is left for the next time.
    """
    raw = await database.connect_raw()
    try:
        if not await raw.fetchval("SELECT pg_try_advisory_lock($1)", LOCK):
            return []  # somebody else is at it
        await raw.execute(f"SET lock_timeout = {int(patience_s * 1000)}")
        dropped = []
        for day, step in await _past(raw, limit):
            try:
                if step:
                    await raw.execute(f"ALTER TABLE runs DETACH PARTITION {name_of(day)} {step}", timeout=60)
                await raw.execute(f"DROP TABLE {name_of(day)}")
            except (asyncpg.PostgresError, TimeoutError) as error:
                log.warning("partition_not_dropped", day=day.isoformat(), error=str(error) or type(error).__name__)
            else:
                log.info("partition_dropped", day=day.isoformat())
                dropped.append(day)
        return dropped
    finally:
        await raw.close(timeout=5)


async def _past(raw: asyncpg.Connection, limit: datetime) -> list[tuple[date, str]]:
    """The days before the limit, oldest first, with how each is detached from where it stands; empty: it is already."""
    rows = await raw.fetch(
        "SELECT c.relname, i.inhdetachpending FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid "
        "WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'runs'::regclass)"
    )
    steps = {None: "", False: "CONCURRENTLY", True: "FINALIZE"}
    found = [(match, steps[pending]) for name, pending in rows if (match := _NAME.fullmatch(name))]
    days_ = sorted((date(int(m[1]), int(m[2]), int(m[3])), step) for m, step in found)
    return [(day, step) for day, step in days_ if _midnight(day) + timedelta(days=1) <= limit]
