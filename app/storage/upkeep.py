"""Upkeep: what a service does to its database every few minutes so that it neither grows nor runs out of days."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import Delete, Exists, TextClause, delete, exists, text

from app.storage import tables
from app.storage.database import Database
from app.storage.partitions import create_ahead, drop_before
from app.storage.rollups import prune, roll_up
from app.storage.ticks import fold_counts, settle_lost
from app.targets.model import Retention
from app.verdict.model import IncidentState
from app.verdict.outbox import DeliveryState

CLAIMS_KEPT = timedelta(days=2)
ANNOUNCEMENTS_KEPT = timedelta(days=30)
QUEUE_LOG_KEPT = timedelta(hours=1)
LOST_JOBS = timedelta(hours=1)
LOCK = 0x62616E647570  # "bandup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a round of upkeep left: whole days ahead that have a partition, days dropped, rows trimmed elsewhere."""

    days_ahead: int
    dropped: tuple[date, ...] = ()
    trimmed: int = 0


async def upkeep(database: Database, *, retention: Retention, now: datetime) -> Kept:
    """Make partitions ahead, roll up, drop days past retention, trim what nobody needs.

    Any number of processes may call it at once: every step is harmless when it was done already.
    """
    days_ahead = await create_ahead(database, now=now)
    await roll_up(database, retention=retention, now=now)
    dropped = await drop_before(database, now - timedelta(seconds=retention.runs_s))
    async with database.write(within_s=None) as connection:
        await connection.execute(text("SET LOCAL lock_timeout = '2s'"))
        await settle_lost(connection, now=now)
        await fold_counts(connection)
        trimmed = await prune(connection, retention=retention, now=now)
        trimmed += sum([(await connection.execute(statement)).rowcount for statement in _stale(retention, now)])
    return Kept(days_ahead=days_ahead, dropped=tuple(dropped), trimmed=trimmed)


def _stale(retention: Retention, now: datetime) -> Iterator[Delete | TextClause]:
    """What goes: of ticks, announcements, the queue's own books, and evidence."""
    announced = tables.outbox.c.finished_at < now - ANNOUNCEMENTS_KEPT
    evident = tables.recordings.c.kept_at < now - timedelta(seconds=retention.runs_s)
    yield delete(tables.claims).where(tables.claims.c.claimed_at < now - CLAIMS_KEPT, tables.claims.c.counted)
    yield delete(tables.outbox).where(tables.outbox.c.state == DeliveryState.DELIVERED, announced, ~_of_open_incident())
    yield text("DELETE FROM pgqueuer_log WHERE created < :before").bindparams(before=now - QUEUE_LOG_KEPT)
    yield text("DELETE FROM pgqueuer_statistics WHERE created < :before").bindparams(before=now - CLAIMS_KEPT)
    yield text("DELETE FROM pgqueuer WHERE status = 'queued' AND execute_after < :before").bindparams(before=now - LOST_JOBS)
    yield delete(tables.recordings).where(evident)


def _of_open_incident() -> Exists:
    """What was said of an incident that is still open is said again to Alertmanagers."""
    return exists().where(tables.incidents.c.id == tables.outbox.c.incident_id, tables.incidents.c.state == IncidentState.OPEN)
