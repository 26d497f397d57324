"""Incidents and their timeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage import tables
from app.storage.database import QUICK_S, Database
from app.storage.documents import from_document, to_document
from app.storage.outbox import add
from app.verdict.model import Advance, Incident, IncidentState, Severity, Trail, Verdict
from app.verdict.outbox import Told

_COLUMNS = tuple(tables.incidents.c[field.name] for field in fields(Incident))
_KEPT = frozenset({"id", "opened_at", "acknowledged_at"})
"""What a decision never changes; somebody may be acknowledging meanwhile."""
_HOLD = text("SELECT 1 FROM totals WHERE target = :target AND location = :location FOR UPDATE")
_ALONE = text("SELECT pg_advisory_xact_lock(hashtextextended(:target || '|' || :location, 0))")


def incident_of(row: Any) -> Incident:  # noqa: ANN401 - a row of the table
    """The incident of a row."""
    values = {column.name: getattr(row, column.name) for column in _COLUMNS}
    told = {"severity": Severity(row.severity), "state": IncidentState(row.state), "channels": tuple(row.channels)}
    return Incident(**{**values, **told})


async def open_incidents(connection: AsyncConnection, *, target: str, location: str) -> tuple[Incident, ...]:
    """What is open of one (target, location), oldest first."""
    i = tables.incidents
    rows = await connection.execute(
        select(*_COLUMNS)
        .where(i.c.target == target, i.c.location == location, i.c.state == IncidentState.OPEN)
        .order_by(i.c.opened_at, i.c.id)
    )
    return tuple(incident_of(row) for row in rows.all())


async def write_advance(connection: AsyncConnection, advance: Advance) -> None:
    """Bring incidents to the state that was decided, and add the changes to their timelines."""
    latest = {change.incident.id: change.verdict for change in advance.changes}
    for incident in advance.incidents:
        values = {field.name: getattr(incident, field.name) for field in fields(Incident)}
        values["channels"] = list(incident.channels)
        if incident.id in latest:
            values["verdict"] = to_document(latest[incident.id])
        statement = insert(tables.incidents).values(**values)
        await connection.execute(
            statement.on_conflict_do_update(
                index_elements=["id"], set_={key: value for key, value in values.items() if key not in _KEPT}
            )
        )
    for change in advance.changes:
        await connection.execute(
            insert(tables.incident_events).values(
                incident_id=change.incident.id,
                at=change.at,
                kind=change.kind,
                summary=change.summary,
                verdict=to_document(change.verdict),
            )
        )


@dataclass(slots=True, kw_only=True)
class Incidents:
    """Open incidents, for who looks after them without a run."""

    database: Database

    async def open(self) -> tuple[tuple[Incident, Verdict | None], ...]:
        """Every open incident with the present verdict of its target and location, oldest first."""
        i, v = tables.incidents, tables.verdicts
        query = (
            select(*_COLUMNS, v.c.verdict.label("present"))
            .join_from(i, v, (v.c.target == i.c.target) & (v.c.location == i.c.location), isouter=True)
            .where(i.c.state == IncidentState.OPEN)
            .order_by(i.c.opened_at, i.c.id)
        )
        async with self.database.read(within_s=QUICK_S) as connection:
            rows = (await connection.execute(query)).all()
        return tuple((incident_of(row), None if row.present is None else from_document(row.present, Verdict)) for row in rows)

    async def decide(
        self, *, target: str, location: str, rule: str, decide: Callable[[Incident | None], Told | None]
    ) -> Told | None:
        """One decision about one rule of a (target, location): what is open of it in, what changes out, stored and
        announced in one transaction, while nobody else decides about this target and location.
        """
        key = {"target": target, "location": location}
        async with self.database.write() as connection:
            await connection.execute(_ALONE, key)
            await connection.execute(_HOLD, key)
            opened = await open_incidents(connection, target=target, location=location)
            told = decide(next((incident for incident in opened if incident.rule == rule), None))
            if told is not None:
                await _write(connection, told)
        return told


async def _write(connection: AsyncConnection, told: Told) -> None:
    incidents = tuple(change.incident for change in told.changes)
    changes = told.changes if told.on_record else ()
    await write_advance(connection, Advance(trail=Trail(), incidents=incidents, changes=changes))
    await add(connection, told.announcements)
    for incident in incidents:
        if incident.state is IncidentState.RESOLVED:
            await _forget_trail(connection, incident)


async def _forget_trail(connection: AsyncConnection, incident: Incident) -> None:
    """A target that is watched again is judged anew: what was seen before does not open an incident at its first run."""
    v = tables.verdicts
    here = (v.c.target == incident.target) & (v.c.location == incident.location)
    await connection.execute(v.update().where(here).values(trail=to_document(Trail())))
