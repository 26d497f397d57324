"""Incidents and their timelines, and the outbox of what was said of them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from app.api.params import Asking, Cursor, Limit, Listed, Reading, Served, Writing
from app.api.problems import responses
from app.api.views import IncidentDetailOut, IncidentOut, IncidentsOut
from app.storage.queries.deliveries import Delivery, list_deliveries
from app.storage.queries.deliveries import replay as make_pending
from app.storage.queries.incidents import acknowledge as note_seen
from app.storage.queries.incidents import get_incident, list_incidents
from app.storage.queries.keys import write_audit
from app.verdict.model import IncidentState
from app.verdict.outbox import DeliveryState

router = APIRouter(tags=["incidents"], responses=responses())
Id = Annotated[str, Path(max_length=200)]


class DeliveriesOut(Listed):
    """A list of deliveries."""

    items: list[Delivery]


@router.get("/incidents", summary="Incidents")
async def incidents(
    session: Reading,
    state: Literal["open", "resolved", "closed"] | None = None,
    target: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> IncidentsOut:
    """The newest first. `closed` is another word for `resolved`."""
    wanted = None if state is None else IncidentState("resolved" if state == "closed" else state)
    page = await list_incidents(session, state=wanted, target=target, limit=limit, cursor=cursor)
    return IncidentsOut(items=[IncidentOut.of(incident) for incident in page.items], next_cursor=page.next_cursor)


@router.get("/incidents/{incident_id}", summary="One incident", responses=responses(404))
async def incident(session: Reading, incident_id: Id) -> IncidentDetailOut:
    """An incident with the verdict it last rested on, and its timeline."""
    return IncidentDetailOut.of_detail(await get_incident(session, incident_id))


@router.post("/incidents/{incident_id}/acknowledge", summary="Somebody has seen it", responses=responses(404))
async def acknowledge(served: Served, session: Writing, asking: Asking, incident_id: Id) -> IncidentOut:
    """No more reminders of this incident; its end is still announced. A second time changes nothing."""
    now = served.clock.now()
    found = await note_seen(session, incident_id, now=now, who=asking.name)
    await write_audit(session, at=now, actor=asking.name, action="incident.acknowledge", subject=incident_id)
    return IncidentOut.of(found)


@router.get("/deliveries", summary="The alert outbox")
async def deliveries(
    session: Reading,
    state: DeliveryState | None = None,
    incident: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> DeliveriesOut:
    """What was or will be announced, the newest first, with every attempt."""
    page = await list_deliveries(session, state=state, incident_id=incident, limit=limit, cursor=cursor)
    return DeliveriesOut(items=list(page.items), next_cursor=page.next_cursor)


@router.post("/deliveries/{delivery_id}/replay", summary="Deliver again", status_code=202, responses=responses(404))
async def replay(served: Served, session: Writing, asking: Asking, delivery_id: Id) -> dict[str, str]:
    """Make a dead or delivered announcement pending again, under the same `webhook-id`."""
    now = served.clock.now()
    await make_pending(session, delivery_id, now=now)
    await write_audit(session, at=now, actor=asking.name, action="delivery.replay", subject=delivery_id)
    return {"id": delivery_id, "state": DeliveryState.PENDING}
