"""Figures over time, and the ranking of a span."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query

from app.api.params import Duration, From, Listed, Name, Reading, Served, To, find_target, span_of
from app.api.problems import responses
from app.errors import UsageError
from app.storage.queries.figures import UNIT, Metric, Stat
from app.storage.queries.leaderboard import Order, Rank, rank
from app.storage.queries.series import Point, Span, choose_step
from app.storage.queries.series import series as read_series
from app.units import format_duration

router = APIRouter(tags=["figures"], responses=responses())
MOST_POINTS = 5000


class SeriesOut(Listed):
    """A series. A point without enough samples has the value null; a step without a run has no point."""

    target: str
    metric: Metric
    stat: Stat
    unit: str
    step_s: float
    since: datetime
    until: datetime
    source: Literal["runs", "rollups"]
    items: list[Point]


class LeaderboardOut(Listed):
    """A ranking of targets."""

    window_s: float
    sort: Order
    items: list[Rank]


@router.get("/targets/{name:path}/series", summary="A figure over time", responses=responses(404))
async def series(
    *,
    served: Served,
    session: Reading,
    name: Name,
    metric: Metric = Metric.TPS,
    stat: Stat = Stat.P50,
    since: From = None,
    to: To = None,
    step: Annotated[Duration | None, Query(description="seconds a point, such as 5m; chosen to fit when left out")] = None,
    location: Annotated[str | None, Query(max_length=63)] = None,
) -> SeriesOut:
    """The last day unless `from` and `to` say otherwise. Percentiles come from runs, or from rollups where those suffice."""
    target = find_target(served.config(), name)
    start, end = span_of(since, to, now=served.clock.now(), default=timedelta(days=1))
    length_s = (end - start).total_seconds()
    if length_s <= 0:
        raise UsageError("from: must lie before to")
    step_s = step or choose_step(length_s, every_s=target.every_s)
    if length_s / step_s > MOST_POINTS:
        raise UsageError(f"step: makes more than {MOST_POINTS} points; use {format_duration(choose_step(length_s))} or more")
    found = await read_series(
        session,
        target=target.name,
        metric=metric,
        stat=stat,
        span=Span(since=start, until=end, step_s=step_s),
        location=location,
    )
    return SeriesOut(
        target=target.name,
        metric=metric,
        stat=stat,
        unit="runs" if stat is Stat.COUNT else UNIT[metric],
        step_s=step_s,
        since=start,
        until=end,
        source=found.source,
        items=list(found.points),
    )


@router.get("/leaderboard", summary="Targets ranked")
async def leaderboard(
    served: Served,
    session: Reading,
    model: Annotated[str | None, Query(max_length=300, description="only models whose name has this in it")] = None,
    window: Duration = 86400.0,
    sort: Order = Order.TPS,
) -> LeaderboardOut:
    """Medians with 95 % confidence intervals and sample counts; targets without enough samples come last."""
    now = served.clock.now()
    ranks = await rank(session, served.config().targets, model=model, window_s=window, order=sort, now=now)
    return LeaderboardOut(window_s=window, sort=sort, items=list(ranks))
