"""Figures over time, in steps that lie on the same grid for everybody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Float, cast, extract, func, select

from app.measurement.sketch import merged
from app.storage.partitions import days
from app.storage.queries.figures import FRACTION, NEEDED, Metric, Stat, figure_of
from app.storage.queries.session import ReadSession
from app.storage.rollups import FINE_S, Rollup, add_outcomes, floor_to, read_rollups, rollups_of_runs
from app.storage.rollups import STEPS_S as STEPS
from app.storage.tables import rollup_marks, runs


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
RAW_FOR = timedelta(days=1, hours=1)
"""Spans up to this long are computed from runs, exactly."""


def choose_step(length_s: float, *, every_s: float = 0.0) -> float:
    """A round step that makes at most `POINTS` points of a span, and holds enough runs of a target for a median."""
    least = (NEEDED[Stat.P50] + 2) * every_s
    return next((step for step in STEPS_S if length_s / step <= POINTS and step >= least), STEPS_S[-1])


async def series(
    session: ReadSession, *, target: str, metric: Metric, stat: Stat, span: Span, location: str | None = None
) -> Series:
    """A figure over time: from runs where they are few and still kept, else from rollups (percentiles within 2 %)."""
    reached = await _rolled_up(session)
    if reached is not None and await _prefers_rollups(session, span):
        wanted = Wanted(target=target, metric=metric, stat=stat, location=location)
        return Series(points=await rollup_series(session, wanted, span, reached=reached), source="rollups")
    points = await raw_series(session, target=target, metric=metric, stat=stat, span=span, location=location)
    return Series(points=points, source="runs")


async def _rolled_up(session: ReadSession) -> datetime | None:
    m = rollup_marks
    found: datetime | None = (await session.connection.execute(select(m.c.until).where(m.c.step_s == FINE_S))).scalar()
    return found


async def _prefers_rollups(session: ReadSession, span: Span) -> bool:
    """Can rollups tell the span (whole multiples of the shortest step), and is it long, or older than the runs?"""
    if span.step_s % FINE_S:
        return False
    if span.until - span.since > RAW_FOR:
        return True
    kept = await days(session.connection)
    return not kept or span.since.astimezone(UTC).date() < kept[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which figure, and of whom; None: all locations together."""

    target: str
    metric: Metric
    stat: Stat
    location: str | None = None


async def rollup_series(session: ReadSession, wanted: Wanted, span: Span, *, reached: datetime) -> tuple[Point, ...]:
    """A series computed from the longest rollups that fit into the steps, and from runs where those end. The first and the
    last step are whole.
    """
    step_s = int(span.step_s)
    length_s = max(length for length in STEPS if step_s % length == 0)
    since = floor_to(span.since, step_s)
    parts = await read_rollups(
        session.connection,
        step_s=length_s,
        since=since,
        until=min(span.until, reached),
        target=wanted.target,
        location=wanted.location,
        metric=wanted.metric,
    )
    if span.until > reached:
        fresh = await rollups_of_runs(session.connection, max(since, reached), span.until, target=wanted.target)
        parts += [part for part in fresh if wanted.location in {None, part.location}]
    steps: dict[datetime, list[Rollup]] = {}
    for part in parts:
        steps.setdefault(floor_to(part.at, step_s), []).append(part)
    return tuple(_point(at, steps[at], wanted) for at in sorted(steps))


def _point(at: datetime, parts: list[Rollup], wanted: Wanted) -> Point:
    if wanted.stat is Stat.COUNT:
        n = sum(add_outcomes(part.outcomes for part in parts).values())
        return Point(at=at, value=float(n), n=n)
    sketch = merged(part.sketches[wanted.metric] for part in parts if wanted.metric in part.sketches)
    value = sketch.mean if wanted.stat is Stat.MEAN else sketch.percentile(FRACTION[wanted.stat])
    return Point(at=at, value=value if sketch.n >= NEEDED[wanted.stat] else None, n=sketch.n)


async def raw_series(
    session: ReadSession, *, target: str, metric: Metric, stat: Stat, span: Span, location: str | None = None
) -> tuple[Point, ...]:
    """A series computed from runs. Steps without a run are left out."""
    figure = figure_of(metric)
    step = func.floor(extract("epoch", runs.c.due_at) / cast(span.step_s, Float)).label("step")
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
