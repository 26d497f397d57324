"""Incidents and their timeline."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage import tables
from app.storage.documents import to_document
from app.verdict.model import Advance, Incident, IncidentState, Severity

_COLUMNS = tuple(tables.incidents.c[field.name] for field in fields(Incident))


def incident_of(row: Any) -> Incident:  # noqa: ANN401 - a row of the table
    """The incident of a row."""
    values = {column.name: getattr(row, column.name) for column in _COLUMNS}
    return Incident(**{**values, "severity": Severity(row.severity), "state": IncidentState(row.state)})


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
        if incident.id in latest:
            values["verdict"] = to_document(latest[incident.id])
        statement = insert(tables.incidents).values(**values)
        await connection.execute(
            statement.on_conflict_do_update(
                index_elements=["id"], set_={key: value for key, value in values.items() if key not in {"id", "opened_at"}}
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
