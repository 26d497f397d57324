"""`/compare`: several targets over the same span, side by side."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.storage.queries.figures import UNIT, Metric
from app.storage.queries.fleet import Standing, standings, verdicts_of
from app.storage.queries.leaderboard import Order, rank_standings
from app.storage.queries.summaries import summaries
from app.units import parse_duration
from app.web.draw.chart import WIDE, Line, chart
from app.web.pages.target import WINDOWS, Window, fitting, medians
from app.web.site import Site

MOST = 8


def compare_page(site: Site) -> APIRouter:
    """The page; without a choice it compares the first targets of the fleet."""
    router = APIRouter()

    @router.get("/compare", response_class=HTMLResponse)
    async def page(
        request: Request,
        target: Annotated[list[str] | None, Query(max_length=50)] = None,
        metric: Metric = Metric.TPS,
        window: Window | None = None,
    ) -> HTMLResponse:
        everything = sorted(site.config().targets, key=lambda each: each.name)
        chosen = [each for each in everything if each.name in (target or ())][:MOST] or everything[:4]
        now = site.clock.now()
        lines = []
        async with site.look() as session:
            window = window or fitting(await standings(session, chosen, now=now))
            since = now - timedelta(seconds=parse_duration(window))
            for index, each in enumerate(chosen, start=1):
                points = await medians(session, each, metric, since=since, until=now)
                lines.append(Line(name=each.name, points=points, style=f"line-{index}"))
            said = await verdicts_of(session, chosen, now=now) if chosen else {}
            days = await summaries(session, since=since, until=now + timedelta(days=1))
        fleet = [Standing(target=t, verdicts=said.get(t.name, ()), summary=days.get(t.name)) for t in chosen]
        order = Order.TTFT if metric is Metric.TTFT else Order.TPS
        return site.page(
            request,
            "compare.html",
            targets=everything,
            chosen={each.name: index for index, each in enumerate(chosen, start=1)},
            metric=metric,
            metrics=list(Metric),
            window=window,
            windows=WINDOWS,
            ranks=rank_standings(fleet, order=order),
            picture=chart(lines, since=since, until=now, unit=UNIT[metric], title=f"Median {metric} over {window}", width=WIDE),
        )

    return router
