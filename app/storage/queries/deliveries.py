"""The alert outbox as people look at it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select, update

from app.errors import NotFoundError
from app.storage import tables
from app.storage.outbox import pending_again
from app.storage.queries.cursors import Page, decode_cursor, encode_cursor, page_of
from app.storage.queries.session import ReadSession, WriteSession
from app.verdict.outbox import Attempt, DeliveryState


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One announcement to one channel, and how its delivery stands. `id` is the `webhook-id`."""

    id: str
    channel: str
    type: str
    incident_id: str | None
    state: DeliveryState
    created_at: datetime
    next_at: datetime
    finished_at: datetime | None
    attempts: int
    log: tuple[Attempt, ...]
    """The attempts that are kept, oldest first."""


async def list_deliveries(
    session: ReadSession,
    *,
    state: DeliveryState | None = None,
    incident_id: str | None = None,
    limit: int,
    cursor: str | None = None,
) -> Page[Delivery]:
    """A page of deliveries, the newest first.

    Raises:
        UsageError: the cursor is none of a list of deliveries.
    """
    o = tables.outbox
    query = select(o).order_by(o.c.seq.desc()).limit(limit + 1)
    if state is not None:
        query = query.where(o.c.state == state)
    if incident_id is not None:
        query = query.where(o.c.incident_id == incident_id)
    if cursor is not None:
        query = query.where(o.c.seq < decode_cursor(cursor, int)[0])
    rows = (await session.connection.execute(query)).all()
    logs = await _logs(session, [row.id for row in rows])
    last = rows[min(limit, len(rows)) - 1].seq if rows else None
    made = [_delivery(row, logs.get(row.id, ())) for row in rows]
    return page_of(made, limit=limit, cursor=None if last is None else encode_cursor(last))


def _delivery(row: Any, log: tuple[Attempt, ...]) -> Delivery:  # noqa: ANN401 - a row of the table
    return Delivery(
        id=row.id,
        channel=row.channel,
        type=row.type,
        incident_id=row.incident_id,
        state=DeliveryState(row.state),
        created_at=row.created_at,
        next_at=row.next_at,
        finished_at=row.finished_at,
        attempts=row.attempts,
        log=log,
    )


async def _logs(session: ReadSession, ids: list[str]) -> dict[str, tuple[Attempt, ...]]:
    a = tables.delivery_attempts
    logs: dict[str, tuple[Attempt, ...]] = {}
    rows = await session.connection.execute(select(a).where(a.c.outbox_id.in_(ids)).order_by(a.c.outbox_id, a.c.id))
    for row in rows.all():
        attempt = Attempt(at=row.at, status=row.status, latency_s=row.latency_s, response=row.response)
        logs[row.outbox_id] = (*logs.get(row.outbox_id, ()), attempt)
    return logs


async def replay(session: WriteSession, delivery_id: str, *, now: datetime) -> None:
    """Make an announcement pending again, under the same id and with all attempts before it.

    Raises:
        NotFoundError: nobody knows it.
    """
    o = tables.outbox
    done = await session.connection.execute(
        update(o).where(o.c.id == delivery_id).values(**pending_again(now)).returning(o.c.seq)
    )
    if done.first() is None:
        raise NotFoundError(f"no delivery '{delivery_id[:80]}'")
