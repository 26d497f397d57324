"""Incidents and current verdicts as people look at them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import select, tuple_, update

from app.errors import NotFoundError
from app.storage import tables
from app.storage.documents import from_document
from app.storage.incidents import incident_of
from app.storage.queries.cursors import Page, decode_cursor, encode_cursor, page_of
from app.storage.queries.session import ReadSession, WriteSession
from app.verdict.model import Incident, IncidentState, Verdict

_i = tables.incidents
_COLUMNS = tuple(_i.c[field.name] for field in fields(Incident))


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEvent:
    """One step of an incident's life. `kind` is opened, updated, reminder, resolved or acknowledged."""

    at: datetime
    kind: str
    summary: str
    verdict: Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentDetail:
    """An incident, the verdict it last rested on, and its timeline, oldest first."""

    incident: Incident
    verdict: Verdict | None
    timeline: tuple[IncidentEvent, ...]


def _verdict(document: Any) -> Verdict | None:  # noqa: ANN401 - JSON
    return None if document is None else from_document(document, Verdict)


async def list_incidents(
    session: ReadSession,
    *,
    state: IncidentState | None = None,
    target: str | None = None,
    limit: int,
    cursor: str | None = None,
) -> Page[Incident]:
    """A page of incidents, the newest first.

    Raises:
        UsageError: the cursor is none of a list of incidents.
    """
    query = select(*_COLUMNS).order_by(_i.c.opened_at.desc(), _i.c.id.desc()).limit(limit + 1)
    if state is not None:
        query = query.where(_i.c.state == state)
    if target is not None:
        query = query.where(_i.c.target == target)
    if cursor is not None:
        query = query.where(tuple_(_i.c.opened_at, _i.c.id) < tuple_(*decode_cursor(cursor, datetime, str)))
    rows = [incident_of(row) for row in (await session.connection.execute(query)).all()]
    last = rows[min(limit, len(rows)) - 1] if rows else None
    return page_of(rows, limit=limit, cursor=None if last is None else encode_cursor(last.opened_at, last.id))


async def get_incident(session: ReadSession, incident_id: str) -> IncidentDetail:
    """One incident with its timeline.

    Raises:
        NotFoundError: nobody knows it.
    """
    row = (await session.connection.execute(select(*_COLUMNS, _i.c.verdict).where(_i.c.id == incident_id))).first()
    if row is None:
        raise NotFoundError(f"no incident '{incident_id[:80]}'")
    e = tables.incident_events
    events = await session.connection.execute(
        select(e.c.at, e.c.kind, e.c.summary, e.c.verdict).where(e.c.incident_id == incident_id).order_by(e.c.id)
    )
    timeline = tuple(
        IncidentEvent(at=each.at, kind=each.kind, summary=each.summary, verdict=_verdict(each.verdict)) for each in events.all()
    )
    return IncidentDetail(incident=incident_of(row), verdict=_verdict(row.verdict), timeline=timeline)


async def acknowledge(session: WriteSession, incident_id: str, *, now: datetime, who: str) -> Incident:
    """Somebody has seen it: no more reminders. A second time changes nothing.

    Raises:
        NotFoundError: nobody knows it.
    """
    done = await session.connection.execute(
        update(_i).where(_i.c.id == incident_id, _i.c.acknowledged_at.is_(None)).values(acknowledged_at=now).returning(_i.c.id)
    )
    if done.first() is not None:
        await session.connection.execute(
            tables.incident_events.insert().values(
                incident_id=incident_id, at=now, kind="acknowledged", summary=f"acknowledged by {who}"
            )
        )
    return (await get_incident(session, incident_id)).incident


async def current_verdicts(session: ReadSession, *, target: str | None = None) -> tuple[Verdict, ...]:
    """What is said now of each (target, location), by name."""
    v = tables.verdicts
    query = select(v.c.verdict).order_by(v.c.target, v.c.location)
    if target is not None:
        query = query.where(v.c.target == target)
    return tuple(from_document(document, Verdict) for document in (await session.connection.execute(query)).scalars())
