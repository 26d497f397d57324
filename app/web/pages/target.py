"""`/targets/{name}`: one target: its verdict in words, its figures over time, where its time goes, its last runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.storage.queries.figures import Metric, Stat
from app.storage.queries.fleet import Standing, standings
from app.storage.queries.incidents import list_incidents
from app.storage.queries.phases import median_phases, recent_measurements
from app.storage.queries.runs import RunFilter, list_runs
from app.storage.queries.series import Point, Span, choose_step, scatter, series
from app.storage.queries.session import ReadSession
from app.targets.model import Target
from app.units import parse_duration
from app.web.draw.chart import Level, Line, chart
from app.web.draw.timeline import phases
from app.web.site import Site

WINDOWS = ("1h", "6h", "24h", "7d", "30d")
SCATTER_UP_TO_S = 86400.0
MOST_DOTS = 3000
Window = Annotated[str, Query(pattern=f"^({'|'.join(WINDOWS)})$")]


def target_pages(site: Site) -> APIRouter:
    """The page of a target, and the figures that its charts load."""
    router = APIRouter()

    @router.get("/targets/{name:path}/figures.json")
    async def figures(name: str, window: Window = "24h") -> dict[str, Any]:
        """What the interactive charts show: medians over time, single runs, and the lines to hold them against."""
        target, now = site.target(name), site.clock.now()
        length_s = parse_duration(window)
        since = now - timedelta(seconds=length_s)
        async with site.look() as session:
            (standing,) = await standings(session, [target], now=now)
            lines = {m.value: await medians(session, target, m, since=since, until=now) for m in (Metric.TPS, Metric.TTFT)}
            dots = (
                await scatter(session, target=name, since=since, until=now, limit=MOST_DOTS)
                if length_s <= SCATTER_UP_TO_S
                else ()
            )
        return {
            "since": since.timestamp(),
            "until": now.timestamp(),
            "lines": {key: [[p.at.timestamp(), p.value] for p in points] for key, points in lines.items()},
            "dots": [[dot.at.timestamp(), dot.decode_tps, dot.ttft_s, dot.run_id, dot.outcome] for dot in dots],
            "levels": {level.name: level.value for level in _levels(standing)},
        }

    @router.get("/targets/{name:path}", response_class=HTMLResponse)
    async def page(request: Request, name: str, window: Window | None = None) -> HTMLResponse:
        target, now = site.target(name), site.clock.now()
        async with site.look() as session:
            (standing,) = await standings(session, [target], now=now)
            window = window or fitting([standing])
            since = now - timedelta(seconds=parse_duration(window))
            speeds = await medians(session, target, Metric.TPS, since=since, until=now)
            waits = await medians(session, target, Metric.TTFT, since=since, until=now)
            runs = await list_runs(session, RunFilter(target=name), limit=30)
            incidents = await list_incidents(session, target=name, limit=10)
            measured = await recent_measurements(session, target=name)
        stages = median_phases(measured)
        return site.page(
            request,
            "target.html",
            standing=standing,
            target=target,
            window=window,
            windows=WINDOWS,
            speed_chart=chart(
                [Line(name="median", points=speeds)],
                levels=_levels(standing),
                since=since,
                until=now,
                unit="tokens/s",
                title="Decode speed over time, median of each step",
            ),
            wait_chart=chart(
                [Line(name="median", points=waits, style="line-2")],
                since=since,
                until=now,
                unit="s",
                title="Time to first token over time, median of each step",
            ),
            stages=stages,
            stages_chart=phases(stages, title="Median phases of the last runs"),
            measured=len(measured),
            runs=runs.items,
            incidents=incidents.items,
        )

    return router


def fitting(fleet: Sequence[Standing]) -> str:
    """The span to begin with: a day, or less where there is less to see."""
    seen_s = max((s.summary.runs * s.target.every_s for s in fleet if s.summary is not None), default=0.0)
    return next((each for each in WINDOWS[:2] if seen_s <= parse_duration(each)), "24h")


def _levels(standing: Standing) -> tuple[Level, ...]:
    newest = max(standing.verdicts, key=lambda verdict: verdict.checked_at, default=None)
    if newest is None:
        return ()
    found = (("expected", newest.expected, "level-expected"), ("ceiling", newest.ceiling, "level-ceiling"))
    return tuple(Level(name=name, value=value, style=style) for name, value, style in found if value is not None)


async def medians(
    session: ReadSession, target: Target, metric: Metric, *, since: datetime, until: datetime
) -> tuple[Point, ...]:
    """The medians of a span, each in the middle of its step."""
    step_s = choose_step((until - since).total_seconds(), every_s=target.every_s)
    span = Span(since=since, until=until, step_s=step_s)
    found = await series(session, target=target.name, metric=metric, stat=Stat.P50, span=span)
    return tuple(replace(point, at=min(until, point.at + timedelta(seconds=step_s / 2))) for point in found.points)
