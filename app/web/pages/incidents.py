"""`/incidents` and `/incidents/{id}`: what went wrong, since when, who was told, who has seen it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from app.storage.queries.deliveries import list_deliveries
from app.storage.queries.incidents import acknowledge, get_incident, list_incidents
from app.storage.queries.keys import write_audit
from app.storage.queries.session import writing
from app.verdict.model import IncidentState
from app.web.site import Site, caller_name

PER_PAGE = 50


def incident_pages(site: Site) -> APIRouter:
    """The list, one of it, and the button that says that somebody has seen it."""
    router = APIRouter()

    @router.get("/incidents", response_class=HTMLResponse)
    async def many(
        request: Request,
        state: Literal["open", "resolved", "all"] = "all",
        cursor: Annotated[str | None, Query(max_length=600)] = None,
    ) -> HTMLResponse:
        wanted = None if state == "all" else IncidentState(state)
        async with site.look() as session:
            page = await list_incidents(session, state=wanted, limit=PER_PAGE, cursor=cursor)
        return site.page(request, "incidents.html", page=page, state=state)

    @router.get("/incidents/{incident_id}", response_class=HTMLResponse)
    async def one(request: Request, incident_id: str) -> HTMLResponse:
        async with site.look() as session:
            found = await get_incident(session, incident_id[:200])
            told = await list_deliveries(session, incident_id=incident_id[:200], limit=50)
        return site.page(request, "incident.html", found=found, incident=found.incident, verdict=found.verdict, told=told.items)

    @router.post("/incidents/{incident_id}/acknowledge")
    async def seen(request: Request, incident_id: str) -> RedirectResponse:
        """The doorkeeper has let through only who may write, and only from our own page."""
        now, who = site.clock.now(), caller_name(request)
        async with writing(site.database) as session:
            incident = await acknowledge(session, incident_id[:200], now=now, who=who)
            await write_audit(session, at=now, actor=who, action="incident.acknowledge", subject=incident.id)
        return RedirectResponse(f"/incidents/{incident.id}", status_code=303)

    return router
