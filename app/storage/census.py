"""What is in the database, and how much of it: for a person who looks after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import text

from app.storage.database import Database
from app.storage.migrate import revisions
from app.storage.partitions import ahead, days

_SIZES = text("""
SELECT coalesce(parent.relname, c.relname) AS name, sum(greatest(c.reltuples, 0))::bigint AS rows,
  sum(pg_total_relation_size(c.oid))::bigint AS bytes
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
LEFT JOIN pg_class parent ON parent.oid = i.inhparent
WHERE c.relkind IN ('r', 'p')
GROUP BY 1 ORDER BY 3 DESC, 1
""")
_WORK = text("""
SELECT (SELECT count(*) FROM pgqueuer WHERE status = 'queued') AS queued,
  (SELECT count(*) FROM pgqueuer WHERE status = 'picked') AS running,
  (SELECT count(*) FROM outbox WHERE state = 'pending') AS pending,
  (SELECT min(created_at) FROM outbox WHERE state = 'pending') AS oldest_pending_at,
  (SELECT count(*) FROM outbox WHERE state = 'dead') AS dead,
  (SELECT at FROM schedule_mark) AS scheduled_until,
  (SELECT jsonb_object_agg(step_s, until) FROM rollup_marks) AS rolled_up_until
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with its partitions and indexes; `rows` is Postgres' estimate as of its last ANALYZE."""

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """The days of runs that have a partition, and how many of them lie ahead without a hole."""

    count: int
    oldest: date | None
    newest: date | None
    days_ahead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What waits: jobs, announcements; and how far the schedule and the rollups (seconds of a step -> instant) have come."""

    jobs_queued: int
    jobs_running: int
    announcements_pending: int
    announcements_dead: int
    oldest_pending_at: datetime | None
    scheduled_until: datetime | None
    rolled_up_until: dict[str, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """All of it. `partitions` and `work` are None while there is no schema."""

    postgres: str
    revision: str
    newest_revision: str
    database_bytes: int
    tables: tuple[Table, ...] = ()
    partitions: Partitions | None = None
    work: Work | None = None

    @property
    def up_to_date(self) -> bool:
        """Is the schema the one that this program knows?"""
        return self.revision == self.newest_revision


async def take_census(database: Database, *, now: datetime) -> Census:
    """Look once.

    Raises:
        UnavailableError: Postgres is away.
    """
    version = await database.check()
    current, newest = await revisions(database)
    async with database.read() as connection:
        size = (await connection.execute(text("SELECT pg_database_size(current_database())"))).scalar_one()
        tables = tuple(Table(name=row.name, rows=row.rows, bytes=row.bytes) for row in await connection.execute(_SIZES))
        if current != newest:
            return Census(postgres=version, revision=current, newest_revision=newest, database_bytes=size, tables=tables)
        there = await days(connection)
        work = _work((await connection.execute(_WORK)).one())
    partitions = Partitions(
        count=len(there),
        oldest=there[0] if there else None,
        newest=there[-1] if there else None,
        days_ahead=ahead(there, now=now),
    )
    return Census(
        postgres=version,
        revision=current,
        newest_revision=newest,
        database_bytes=size,
        tables=tables,
        partitions=partitions,
        work=work,
    )


def _work(row: Any) -> Work:  # noqa: ANN401 - a row of _WORK
    return Work(
        jobs_queued=row.queued,
        jobs_running=row.running,
        announcements_pending=row.pending,
        announcements_dead=row.dead,
        oldest_pending_at=row.oldest_pending_at,
        scheduled_until=row.scheduled_until,
        rolled_up_until={step: datetime.fromisoformat(until) for step, until in (row.rolled_up_until or {}).items()},
    )
