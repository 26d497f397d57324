"""Upkeep: what a service does to its database every few minutes so that it neither grows nor runs out of days."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Exists, delete, exists, text

from app.storage import tables
from app.storage.database import Database
from app.storage.partitions import create_ahead, drop_before
from app.targets.model import Retention
from app.verdict.model import IncidentState
from app.verdict.outbox import DeliveryState

CLAIMS_KEPT = timedelta(days=2)
ANNOUNCEMENTS_KEPT = timedelta(days=30)
QUEUE_LOG_KEPT = timedelta(hours=1)
LOST_JOBS = timedelta(hours=1)
LOCK = 0x62616E647570  # "bandup"


async def upkeep(database: Database, *, retention: Retention, now: datetime) -> int:
    """Make partitions ahead, drop those past retention, trim what nobody needs; returns the whole days ahead.

    Any number of processes may call it at once: every step is harmless when it was done already.
    """
    days_ahead = await create_ahead(database, now=now)
    await drop_before(database, now - timedelta(seconds=retention.runs_s))
    async with database.write() as connection:
        await connection.execute(text("SET LOCAL lock_timeout = '2s'"))
        await connection.execute(delete(tables.claims).where(tables.claims.c.claimed_at < now - CLAIMS_KEPT))
        finished = tables.outbox.c.finished_at < now - ANNOUNCEMENTS_KEPT
        await connection.execute(
            delete(tables.outbox).where(tables.outbox.c.state == DeliveryState.DELIVERED, finished, ~_of_open_incident())
        )
        await connection.execute(text("DELETE FROM pgqueuer_log WHERE created < :before"), {"before": now - QUEUE_LOG_KEPT})
        await connection.execute(text("DELETE FROM pgqueuer_statistics WHERE created < :before"), {"before": now - CLAIMS_KEPT})
        await connection.execute(
            text("DELETE FROM pgqueuer WHERE status = 'queued' AND execute_after < :before"), {"before": now - LOST_JOBS}
        )
        await connection.execute(
            delete(tables.recordings).where(tables.recordings.c.kept_at < now - timedelta(seconds=retention.runs_s))
        )
    return days_ahead


def _of_open_incident() -> Exists:
    """What was said of an incident that is still open is said again to Alertmanagers."""
    return exists().where(tables.incidents.c.id == tables.outbox.c.incident_id, tables.incidents.c.state == IncidentState.OPEN)
