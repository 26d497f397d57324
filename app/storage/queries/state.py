"""The state of everything at one instant, as metrics and overview pages need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import func, select, text

from app.measurement.totals import Totals
from app.storage import partitions, tables
from app.storage.documents import from_document
from app.storage.queries.session import ReadSession
from app.storage.ticks import tick_counts
from app.verdict.model import IncidentState, Severity
from app.verdict.outbox import DeliveryState

ALIVE = timedelta(seconds=60)
"""A process that has not reported for this long does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """A process as it last reported."""

    instance: str
    role: str
    location: str
    started_at: datetime
    beat_at: datetime
    stats: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateNow:
    """Counts and ages. None: there is nothing to have an age."""

    totals: Mapping[tuple[str, str], Totals] = field(default_factory=dict)
    incidents_open: Mapping[Severity, int] = field(default_factory=dict)
    ticks: Mapping[str, int] = field(default_factory=dict)
    processes: tuple[ProcessRow, ...] = ()
    deliveries: Mapping[tuple[str, DeliveryState], int] = field(default_factory=dict)
    notifications: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(channel, result) -> attempts at delivery, ever; results are delivered, retried, dead."""
    oldest_pending_at: datetime | None = None
    partitions_ahead: int = 0
    queue_oldest_s: float | None = None
    walked_at: datetime | None = None


async def state_now(session: ReadSession, *, now: datetime) -> StateNow:
    """Read all of it in one look."""
    connection = session.connection
    t, i, o, p = tables.totals, tables.incidents, tables.outbox, tables.processes
    totals = (await connection.execute(select(t))).all()
    incidents = select(i.c.severity, func.count().label("n")).where(i.c.state == IncidentState.OPEN).group_by(i.c.severity)
    processes = (await connection.execute(select(p).where(p.c.beat_at > now - ALIVE).order_by(p.c.instance))).all()
    deliveries = select(o.c.channel, o.c.state, func.count().label("n")).group_by(o.c.channel, o.c.state)
    notifications = (await connection.execute(select(tables.delivery_counts))).all()
    pending = select(func.min(o.c.created_at)).where(o.c.state == DeliveryState.PENDING)
    return StateNow(
        totals={(row.target, row.location): from_document(row.totals, Totals) for row in totals},
        incidents_open={Severity(row.severity): row.n for row in (await connection.execute(incidents)).all()},
        ticks=await tick_counts(connection),
        processes=tuple(
            ProcessRow(
                instance=row.instance,
                role=row.role,
                location=row.location,
                started_at=row.started_at,
                beat_at=row.beat_at,
                stats=row.stats,
            )
            for row in processes
        ),
        deliveries={(row.channel, DeliveryState(row.state)): row.n for row in (await connection.execute(deliveries)).all()},
        notifications={(row.channel, row.result): row.n for row in notifications},
        oldest_pending_at=(await connection.execute(pending)).scalar(),
        partitions_ahead=partitions.ahead(await partitions.days(connection), now=now),
        queue_oldest_s=await _queue_oldest(session),
        walked_at=(await connection.execute(select(tables.schedule_mark.c.at))).scalar(),
    )


async def _queue_oldest(session: ReadSession) -> float | None:
    """Seconds that the oldest due job has waited; 0 when none waits."""
    query = text(
        "SELECT coalesce(extract(epoch FROM max(now() - greatest(created, execute_after))), 0) "
        "FROM pgqueuer WHERE status = 'queued' AND execute_after <= now()"
    )
    return float((await session.connection.execute(query)).scalar_one())


async def spent_today(session: ReadSession, *, day: date) -> dict[str, tuple[int, float]]:
    """Scope (`provider:NAME`, `target:NAME`) -> (tokens, USD) reserved or used on that UTC day."""
    b = tables.budgets
    rows = await session.connection.execute(select(b).where(b.c.day == day))
    return {row.scope: (row.tokens, row.usd) for row in rows.all()}


async def answers(session: ReadSession) -> bool:
    """Does the database answer, with our tables in it?"""
    return (await session.connection.execute(select(func.count()).select_from(tables.rollup_marks))).scalar_one() >= 0
