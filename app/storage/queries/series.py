"""Figures over time, in steps that lie on the same grid for everybody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Float, cast, extract, func, select

from app.storage.queries.figures import FRACTION, NEEDED, Metric, Stat, figure_of
from app.storage.queries.session import ReadSession
from app.storage.tables import runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One step: when it begins, the statistic (None: too few samples), from how many."""

    at: datetime
    value: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From when until when, in steps of `step_s` seconds."""

    since: datetime
    until: datetime
    step_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One run of a scatter."""

    at: datetime
    run_id: str
    outcome: str
    ttft_s: float | None
    decode_tps: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points, oldest first, and what they were computed from."""

    points: tuple[Point, ...]
    source: Literal["runs", "rollups"]


STEPS_S = (60.0, 300.0, 900.0, 1800.0, 3600.0, 10800.0, 21600.0, 86400.0, 604800.0)
POINTS = 300


def choose_step(length_s: float, *, every_s: float = 0.0) -> float:
    """A round step that makes at most `POINTS` points of a span, and holds enough runs of a target for a median."""
    least = (NEEDED[Stat.P50] + 2) * every_s
    return next((step for step in STEPS_S if length_s / step <= POINTS and step >= least), STEPS_S[-1])


async def series(
    session: ReadSession, *, target: str, metric: Metric, stat: Stat, span: Span, location: str | None = None
) -> Series:
    """A figure over time."""
    points = await raw_series(session, target=target, metric=metric, stat=stat, span=span, location=location)
    return Series(points=points, source="runs")


async def raw_series(
    session: ReadSession, *, target: str, metric: Metric, stat: Stat, span: Span, location: str | None = None
) -> tuple[Point, ...]:
    """A series computed from runs. Steps without a run are left out."""
    figure = figure_of(metric)
    step = func.floor(extract("epoch", runs.c.started_at) / cast(span.step_s, Float)).label("step")
    value = figure.column
    statistic: Any = {
        Stat.MEAN: func.avg(value),
        Stat.COUNT: cast(func.count(), Float),
    }.get(stat)
    if statistic is None:
        statistic = func.percentile_cont(FRACTION[stat]).within_group(value)
    query = (
        select(step, statistic.filter(figure.reliable).label("value") if stat is not Stat.COUNT else statistic.label("value"))
        .add_columns((func.count() if stat is Stat.COUNT else func.count().filter(figure.reliable)).label("n"))
        .where(runs.c.target == target, runs.c.due_at >= span.since, runs.c.due_at < span.until)
        .group_by("step")
        .order_by("step")
    )
    if location is not None:
        query = query.where(runs.c.location == location)
    return tuple(
        Point(
            at=datetime.fromtimestamp(float(row.step) * span.step_s, UTC),
            value=row.value if row.n >= NEEDED[stat] else None,
            n=row.n,
        )
        for row in (await session.connection.execute(query)).all()
    )


async def scatter(session: ReadSession, *, target: str, since: datetime, until: datetime, limit: int) -> tuple[Dot, ...]:
    """The newest runs of a span as dots, oldest first."""
    query = (
        select(runs.c.started_at, runs.c.id, runs.c.outcome, runs.c.ttft_s, runs.c.decode_tps)
        .where(runs.c.target == target, runs.c.due_at >= since, runs.c.due_at < until)
        .order_by(runs.c.due_at.desc())
        .limit(limit)
    )
    rows = (await session.connection.execute(query)).all()
    return tuple(
        Dot(at=row.started_at, run_id=row.id, outcome=row.outcome, ttft_s=row.ttft_s, decode_tps=row.decode_tps)
        for row in reversed(rows)
    )
