"""Rollups: what became of the runs of 5 minutes, an hour, a day, in few numbers that add up.

The job goes from where it was (`rollup_marks`) up to three minutes ago, and computes every step that it passes whole, from the
runs: to do it again changes nothing, so it may die anywhere. Runs that are stored later than that put their step on a list
(`rollups_due`), in their own transaction, and it is computed again. Hours are the sums of their 5 minutes, and days of their
hours, the present ones as far as they have come. Days whose runs are dropped are never computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
from sqlalchemy import Float, Text, cast, delete, extract, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.measurement.sketch import Sketch, merged, sketch_of
from app.storage import tables
from app.storage.database import Database
from app.storage.queries.figures import Metric, figure_of
from app.targets.model import Retention

FINE_S = 300
STEPS_S = (FINE_S, 3600, 86400)
LAG = timedelta(seconds=180)
"""The job stays this much behind: by then, nearly all runs of a step are stored."""
LATE = timedelta(seconds=120)
"""A run that is stored later than this after the end of its step lists it. The minute between both is longer than any
transaction lasts, so that what the job did not see is on the list.
"""
AT_ONCE = timedelta(hours=2)
"""Of runs, in one transaction."""
LOCK = 0x62616E64726F6C  # "bandrol"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollup:
    """The runs of one (target, location) in one step: counts by outcome, and a sketch a metric of what can be relied on."""

    at: datetime
    target: str
    location: str
    outcomes: dict[str, int]
    sketches: dict[str, Sketch]


def floor_to(at: datetime, step_s: int) -> datetime:
    """The beginning of the step that an instant lies in; steps begin at multiples of their length since 1970 in UTC."""
    return datetime.fromtimestamp(at.timestamp() // step_s * step_s, UTC)


def is_late(due_at: datetime, *, now: datetime) -> bool:
    """May the job have passed the step of a run that is stored now?"""
    return now - floor_to(due_at, FINE_S) > timedelta(seconds=FINE_S) + LATE


async def list_late(connection: AsyncConnection, due_at: datetime) -> None:
    """Have the step of a late run computed again."""
    statement = insert(tables.rollups_due).values(at=floor_to(due_at, FINE_S))
    await connection.execute(statement.on_conflict_do_nothing())


async def roll_up(database: Database, *, retention: Retention, now: datetime) -> int:
    """Compute all that is due; returns how many steps of 5 minutes that were. Another one that is at it leaves nothing to do.

    Raises:
        UnavailableError: Postgres is away.
    """
    done = 0
    oldest = floor_to(now - timedelta(seconds=retention.runs_s), 86400)
    while True:
        async with database.write(within_s=None) as connection:
            if not (await connection.execute(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": LOCK})).scalar_one():
                return done
            steps, more = await _round(connection, oldest=oldest, until=floor_to(now - LAG, FINE_S))
        done += steps
        if not more:
            return done


async def roll_back(connection: AsyncConnection, now: datetime) -> None:
    """The clock was set back: what comes from now on has been passed already, and is passed again."""
    m = tables.rollup_marks
    await connection.execute(m.update().where(m.c.until > now).values(until=floor_to(now, FINE_S)))


async def prune(connection: AsyncConnection, *, retention: Retention, now: datetime) -> int:
    """Delete rollups past retention; returns how many."""
    kept = {300: retention.rollup_5m_s, 3600: retention.rollup_1h_s, 86400: retention.rollup_1d_s}
    r, gone = tables.rollups, 0
    for step_s, kept_s in kept.items():
        old = delete(r).where(r.c.step_s == step_s, r.c.at < now - timedelta(seconds=kept_s))
        gone += (await connection.execute(old)).rowcount
    return gone


async def _round(connection: AsyncConnection, *, oldest: datetime, until: datetime) -> tuple[int, bool]:
    """One transaction's worth: the list first, then a piece of what lies ahead. How many steps, and whether there is more."""
    due = tables.rollups_due
    listed = (await connection.execute(delete(due).where(due.c.at < until).returning(due.c.at))).scalars()
    since = max(await _mark(connection, oldest=oldest, until=until), oldest)
    again = sorted(at for at in listed if oldest <= at < since)
    for at in again:
        await _compute(connection, at, at + timedelta(seconds=FINE_S))
    end = min(until, since + AT_ONCE)
    if end > since:
        await _compute(connection, since, end)
        await _set_marks(connection, end)
    return len(again) + max(0, int((end - since).total_seconds() // FINE_S)), end < until


async def _mark(connection: AsyncConnection, *, oldest: datetime, until: datetime) -> datetime:
    """Where the job was; at first, where the runs begin."""
    m = tables.rollup_marks
    mark = (await connection.execute(select(m.c.until).where(m.c.step_s == FINE_S))).scalar()
    if mark is None:
        r = tables.runs
        first = (await connection.execute(select(func.min(r.c.due_at)).where(r.c.due_at >= oldest))).scalar()
        mark = until if first is None else floor_to(first, FINE_S)
    return mark


async def _set_marks(connection: AsyncConnection, until: datetime) -> None:
    for step_s in STEPS_S:
        statement = insert(tables.rollup_marks).values(step_s=step_s, until=until)
        await connection.execute(statement.on_conflict_do_update(index_elements=["step_s"], set_={"until": until}))


async def _compute(connection: AsyncConnection, since: datetime, until: datetime) -> None:
    """Every step that touches [since, until), of each length, from the next shorter one."""
    await _write(connection, FINE_S, since, until, await rollups_of_runs(connection, since, until))
    for shorter_s, step_s in pairwise(STEPS_S):
        start = floor_to(since, step_s)
        end = floor_to(until - timedelta(microseconds=1), step_s) + timedelta(seconds=step_s)
        parts = await read_rollups(connection, step_s=shorter_s, since=start, until=end)
        await _write(connection, step_s, start, end, _added(parts, step_s))


async def rollups_of_runs(
    connection: AsyncConnection, since: datetime, until: datetime, *, target: str | None = None
) -> list[Rollup]:
    """What the rollups of 5 minutes of runs due in [since, until) are, computed now."""
    r = tables.runs
    step = (func.floor(extract("epoch", r.c.due_at) / FINE_S) * cast(FINE_S, Float)).label("step")
    columns = [func.array_agg(figure_of(metric).column).filter(figure_of(metric).reliable).label(metric) for metric in Metric]
    query = (
        select(step, r.c.target, r.c.location, func.array_agg(r.c.outcome).label("outcomes"), *columns)
        .where(r.c.due_at >= since, r.c.due_at < until)
        .group_by("step", r.c.target, r.c.location)
    )
    if target is not None:
        query = query.where(r.c.target == target)
    return [
        Rollup(
            at=datetime.fromtimestamp(float(row.step), UTC),
            target=row.target,
            location=row.location,
            outcomes={outcome: row.outcomes.count(outcome) for outcome in sorted(set(row.outcomes))},
            sketches={metric: sketch_of(values) for metric in Metric if (values := getattr(row, metric))},
        )
        for row in (await connection.execute(query)).all()
    ]


def _added(parts: Iterable[Rollup], step_s: int) -> list[Rollup]:
    """The sums of rollups over longer steps."""
    groups: dict[tuple[datetime, str, str], list[Rollup]] = {}
    for part in parts:
        groups.setdefault((floor_to(part.at, step_s), part.target, part.location), []).append(part)
    return [
        Rollup(
            at=at,
            target=target,
            location=location,
            outcomes=add_outcomes(part.outcomes for part in group),
            sketches={
                metric: merged(part.sketches[metric] for part in group if metric in part.sketches)
                for metric in sorted({metric for part in group for metric in part.sketches})
            },
        )
        for (at, target, location), group in groups.items()
    ]


def add_outcomes(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Counts by outcome, added up."""
    found: dict[str, int] = {}
    for each in counts:
        for outcome, n in each.items():
            found[outcome] = found.get(outcome, 0) + n
    return found


async def read_rollups(
    connection: AsyncConnection,
    *,
    step_s: int,
    since: datetime,
    until: datetime,
    target: str | None = None,
    location: str | None = None,
    metric: str | None = None,
) -> list[Rollup]:
    """Rollups of a length that begin in [since, until), in order of time; with the sketch of one metric alone, if it is named:
    most of what reading costs is the sketches.
    """
    r = tables.rollups
    sketches = r.c.histograms if metric is None else func.jsonb_build_object(cast(metric, Text), r.c.histograms[metric])
    texts = (cast(r.c.outcomes, Text).label("o"), cast(func.jsonb_strip_nulls(sketches), Text).label("h"))
    query = (
        select(r.c.at, r.c.target, r.c.location, *texts)
        .where(r.c.step_s == step_s, r.c.at >= since, r.c.at < until)
        .order_by(r.c.at)
    )
    if target is not None:
        query = query.where(r.c.target == target)
    if location is not None:
        query = query.where(r.c.location == location)
    return [_rollup(row) for row in (await connection.execute(query)).all()]


def _rollup(row: Any) -> Rollup:  # noqa: ANN401 - a row of read_rollups
    return Rollup(
        at=row.at,
        target=row.target,
        location=row.location,
        outcomes=msgspec.json.decode(row.o, type=dict[str, int]),
        sketches=msgspec.json.decode(row.h, type=dict[str, Sketch]),
    )


async def _write(connection: AsyncConnection, step_s: int, since: datetime, until: datetime, made: Sequence[Rollup]) -> None:
    """Put these in place of all that begin in [since, until)."""
    r = tables.rollups
    await connection.execute(delete(r).where(r.c.step_s == step_s, r.c.at >= since, r.c.at < until))
    rows = [
        {
            "step_s": step_s,
            "at": each.at,
            "target": each.target,
            "location": each.location,
            "outcomes": each.outcomes,
            "histograms": each.sketches,
        }
        for each in made
    ]
    if rows:
        await connection.execute(insert(r), rows)
