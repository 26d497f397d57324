"""`/`: the fleet at a glance, the worst first."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.storage.queries.fleet import Standing, standings
from app.storage.queries.incidents import list_incidents
from app.storage.queries.leaderboard import Order, rank_standings
from app.verdict.model import IncidentState, Severity
from app.web.site import Site

SHOWN_INCIDENTS = 20


def overview(site: Site) -> APIRouter:
    """The overview page; asked for by htmx, only the part that changes."""
    router = APIRouter()

    @router.get("/", response_class=HTMLResponse)
    async def page(request: Request, sort: Annotated[Order, Query()] = Order.TPS) -> HTMLResponse:
        now = site.clock.now()
        targets = sorted(site.config().targets, key=lambda target: target.name)
        async with site.look() as session:
            fleet = await standings(session, targets, now=now)
            incidents = await list_incidents(session, state=IncidentState.OPEN, limit=SHOWN_INCIDENTS)
        by_name = {standing.target.name: standing for standing in fleet}
        ranks = rank_standings(fleet, order=sort)
        return site.page(
            request,
            "overview_live.html" if request.headers.get("hx-request") else "overview.html",
            rows=[(rank, by_name[rank.target]) for rank in ranks],
            incidents=incidents,
            troubled=_troubled(fleet),
            counts=_counts(fleet),
            sort=sort,
            orders=list(Order),
        )

    return router


def _troubled(fleet: tuple[Standing, ...]) -> list[Standing]:
    """What needs somebody's attention, the gravest first."""
    found = [s for s in fleet if s.worst is not None and s.worst.severity is not Severity.NONE and not s.target.paused]
    return sorted(found, key=lambda s: (s.worst is None or s.worst.severity is not Severity.CRITICAL, s.target.name))


def _counts(fleet: tuple[Standing, ...]) -> list[tuple[str, str, int]]:
    """(state, severity class, targets), the gravest first; paused ones by themselves."""
    watched = [standing for standing in fleet if not standing.target.paused]
    counted = Counter((s.state.value, "none" if s.worst is None else s.worst.severity.value) for s in watched)
    order = {"critical": 0, "warning": 1, "none": 2}
    found = [
        (state, severity, n) for (state, severity), n in sorted(counted.items(), key=lambda kv: (order[kv[0][1]], kv[0][0]))
    ]
    paused = len(fleet) - len(watched)
    return [*found, ("paused", "none", paused)] if paused else found
