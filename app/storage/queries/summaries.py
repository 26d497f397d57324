"""The last day (or any span) of each target in a few figures, and the ranking made of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import sqrt
from statistics import NormalDist
from typing import Any

from sqlalchemy import and_, func, select

from app.storage.queries.figures import AGAINST, NEEDED, OK, Metric, Stat, figure_of
from app.storage.queries.session import ReadSession
from app.storage.tables import runs
from app.verdict.model import Interval

_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One target over a span. `uptime` is the share of calls that the provider answered properly, of those that tell;
    a figure with too few samples is None. Intervals are at 95 %.
    """

    target: str
    runs: int = 0
    ok: int = 0
    failed: int = 0
    """Runs that count against the provider."""
    uptime: Interval | None = None
    ttft_s: Interval | None = None
    """Median of reliable TTFT."""
    ttft_p95_s: float | None = None
    tps: Interval | None = None
    """Median of reliable decode speed."""


def wilson(successes: int, n: int) -> Interval | None:
    """A share with its Wilson score interval; None without samples (Wilson 1927, J. Am. Stat. Assoc. 22:209)."""
    if n == 0:
        return None
    share, z2 = successes / n, _Z * _Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z * sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return Interval(value=share, low=max(0.0, min(share, centre - half)), high=min(1.0, max(share, centre + half)), n=n)


async def summaries(session: ReadSession, *, since: datetime, until: datetime, target: str | None = None) -> dict[str, Summary]:
    """The summary of each target that ran in [since, until), from its runs."""
    ranked = _ranked(since=since, until=until, target=target).subquery()
    rows = await session.connection.execute(
        select(
            ranked.c.target,
            func.count().label("runs"),
            func.count().filter(ranked.c.ok).label("ok"),
            func.count().filter(ranked.c.failed).label("failed"),
            *_order_statistics(ranked, "ttft"),
            *_order_statistics(ranked, "tps"),
        ).group_by(ranked.c.target)
    )
    return {row.target: _summary(row) for row in rows.all()}


def _ranked(*, since: datetime, until: datetime, target: str | None) -> Any:  # noqa: ANN401 - a select
    """The runs of the span with the rank of each figure among the reliable ones of its target."""
    columns: list[Any] = [runs.c.target, OK.label("ok"), AGAINST.label("failed")]
    for metric in (Metric.TTFT, Metric.TPS):
        figure = figure_of(metric)
        group = (runs.c.target, figure.reliable)
        columns += [
            figure.column.label(f"{metric}_value"),
            figure.reliable.label(f"{metric}_good"),
            func.row_number().over(partition_by=group, order_by=figure.column).label(f"{metric}_rank"),
            func.count().over(partition_by=group).label(f"{metric}_n"),
        ]
    query = select(*columns).where(runs.c.due_at >= since, runs.c.due_at < until)
    return query if target is None else query.where(runs.c.target == target)


def _order_statistics(ranked: Any, name: str) -> list[Any]:  # noqa: ANN401 - a subquery
    """Median, p95, and the ranks around the median that bound it at 95 % (binomial, normal approximation)."""
    value, good, rank, n = (ranked.c[f"{name}_{part}"] for part in ("value", "good", "rank", "n"))
    half = _Z * func.sqrt(n) / 2

    def at(place: Any) -> Any:  # noqa: ANN401 - an expression
        return func.max(value).filter(and_(good, rank == func.greatest(1, func.least(n, place))))

    return [
        func.avg(value)
        .filter(and_(good, rank.in_([func.floor((n + 1) / 2.0), func.ceil((n + 1) / 2.0)])))
        .label(f"{name}_p50"),
        at(func.ceil(0.95 * n)).label(f"{name}_p95"),
        at(func.floor((n + 1) / 2.0 - half)).label(f"{name}_low"),
        at(func.ceil((n + 1) / 2.0 + half)).label(f"{name}_high"),
        func.coalesce(func.max(n).filter(good), 0).label(f"{name}_count"),
    ]


def _summary(row: Any) -> Summary:  # noqa: ANN401 - a row of `summaries`
    return Summary(
        target=row.target,
        runs=row.runs,
        ok=row.ok,
        failed=row.failed,
        uptime=wilson(row.ok, row.ok + row.failed),
        ttft_s=_interval(row, "ttft"),
        ttft_p95_s=row.ttft_p95 if row.ttft_count >= NEEDED[Stat.P95] else None,
        tps=_interval(row, "tps"),
    )


def _interval(row: Any, name: str) -> Interval | None:  # noqa: ANN401 - a row of `summaries`
    n = getattr(row, f"{name}_count")
    if n < NEEDED[Stat.P50]:
        return None
    bounded = n >= 6  # below, even the extremes cover less than 95 %
    low, high = (getattr(row, f"{name}_{end}") if bounded else None for end in ("low", "high"))
    return Interval(value=getattr(row, f"{name}_p50"), low=low, high=high, n=n)
