"""What has happened since somebody last looked: runs, changes of verdicts, steps of incidents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import func, select

from app.storage import tables
from app.storage.queries.session import ReadSession

OVERLAP = timedelta(seconds=10)
"""Looked at again each time: transactions do not become visible in the order of their times and numbers."""
OVERLAP_IDS = 50
MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened. `key` tells it from all others."""

    kind: Literal["run", "verdict", "incident"]
    key: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How far somebody has looked, and the keys of what was seen lately."""

    runs_at: datetime
    verdicts_id: int
    incidents_id: int
    keys: frozenset[str] = field(default_factory=frozenset)


async def from_now_on(session: ReadSession, *, now: datetime) -> Seen:
    """Begin to look: what is there already counts as seen."""
    v, e = tables.verdict_changes, tables.incident_events
    begun = Seen(
        runs_at=now,
        verdicts_id=(await session.connection.execute(select(func.coalesce(func.max(v.c.id), 0)))).scalar_one(),
        incidents_id=(await session.connection.execute(select(func.coalesce(func.max(e.c.id), 0)))).scalar_one(),
    )
    _, seen = await events_since(session, begun, now=now)
    return seen


async def events_since(session: ReadSession, seen: Seen, *, now: datetime) -> tuple[Sequence[Event], Seen]:
    """What is new, in the order in which it happened, and how far that was."""
    runs = await _runs(session, seen)
    verdicts = await _verdicts(session, seen)
    incidents = await _incidents(session, seen)
    found = [*runs, *verdicts, *incidents]
    fresh = [event for event in found if event.key not in seen.keys]
    after = Seen(
        runs_at=max(seen.runs_at, now),
        verdicts_id=max([seen.verdicts_id, *(event.data["id"] for event in verdicts)]),
        incidents_id=max([seen.incidents_id, *(event.data["id"] for event in incidents)]),
        keys=frozenset(event.key for event in found),
    )
    return fresh, after


async def _runs(session: ReadSession, seen: Seen) -> list[Event]:
    r = tables.runs
    columns = (r.c.id, r.c.target, r.c.location, r.c.outcome, r.c.finished_at, r.c.ttft_s, r.c.decode_tps, r.c.output_tokens)
    query = (
        select(*columns)
        .where(r.c.finished_at > seen.runs_at - OVERLAP, r.c.started_at > seen.runs_at - timedelta(minutes=15))
        .where(r.c.due_at > seen.runs_at - timedelta(days=4))
        .order_by(r.c.finished_at)
        .limit(MOST)
    )
    return [
        Event(kind="run", key=f"run:{row.id}", data={**row._asdict(), "finished_at": row.finished_at.isoformat()})
        for row in (await session.connection.execute(query)).all()
    ]


async def _verdicts(session: ReadSession, seen: Seen) -> list[Event]:
    v = tables.verdict_changes
    query = (
        select(v.c.id, v.c.target, v.c.location, v.c.at, v.c.state, v.c.severity)
        .where(v.c.id > seen.verdicts_id - OVERLAP_IDS)
        .order_by(v.c.id)
        .limit(MOST)
    )
    return [
        Event(kind="verdict", key=f"verdict:{row.id}", data={**row._asdict(), "at": row.at.isoformat()})
        for row in (await session.connection.execute(query)).all()
    ]


async def _incidents(session: ReadSession, seen: Seen) -> list[Event]:
    e, i = tables.incident_events, tables.incidents
    query = (
        select(e.c.id, e.c.incident_id, e.c.at, e.c.kind, e.c.summary, i.c.target, i.c.location, i.c.rule, i.c.severity)
        .join(i, i.c.id == e.c.incident_id)
        .where(e.c.id > seen.incidents_id - OVERLAP_IDS)
        .order_by(e.c.id)
        .limit(MOST)
    )
    return [
        Event(kind="incident", key=f"incident:{row.id}", data={**row._asdict(), "at": row.at.isoformat()})
        for row in (await session.connection.execute(query)).all()
    ]
