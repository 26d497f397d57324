"""Targets ranked by what they reached in a span, with how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from app.storage.queries.fleet import Standing, verdicts_of
from app.storage.queries.session import ReadSession
from app.storage.queries.summaries import Summary, summaries
from app.targets.model import Target
from app.verdict.model import Interval, Severity, State


class Order(StrEnum):
    """What is ranked by, the best first."""

    TPS = "tps"
    TTFT = "ttft"
    EFFICIENCY = "efficiency"
    UPTIME = "uptime"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One line. `efficiency` is median speed over expected speed; intervals are at 95 %. `rank` is None without a figure."""

    rank: int | None
    target: str
    provider: str
    model: str
    model_spec: str | None
    hardware: str | None
    state: State
    severity: Severity
    tps: Interval | None
    ttft_s: Interval | None
    efficiency: Interval | None
    uptime: Interval | None
    expected_tps: float | None
    ceiling_tps: float | None
    runs: int


async def rank(
    session: ReadSession,
    targets: Sequence[Target],
    *,
    window_s: float,
    order: Order,
    now: datetime,
    model: str | None = None,
) -> tuple[Rank, ...]:
    """All targets (or those whose model has `model` in its name), ranked over the last `window_s` seconds."""
    wanted = [target for target in targets if model is None or _is_of(target, model)]
    if not wanted:
        return ()
    said = await verdicts_of(session, wanted, now=now)
    days = await summaries(session, since=now - timedelta(seconds=window_s), until=now + timedelta(days=1))
    fleet = [Standing(target=t, verdicts=said.get(t.name, ()), summary=days.get(t.name)) for t in wanted]
    return rank_standings(fleet, order=order)


def rank_standings(fleet: Sequence[Standing], *, order: Order) -> tuple[Rank, ...]:
    """Targets ranked by their summaries."""
    return numbered([_line(each, each.summary or Summary(target=each.target.name)) for each in fleet], order=order)


def _is_of(target: Target, model: str) -> bool:
    spec = None if target.deployment is None else target.deployment.model_spec
    return any(model.lower() in name.lower() for name in (target.model, spec) if name is not None)


def _line(standing: Standing, summary: Summary) -> Rank:
    target, worst = standing.target, standing.worst
    newest = max(standing.verdicts, key=lambda verdict: verdict.checked_at, default=None)
    expected = None if newest is None else newest.expected
    known = target.deployment
    return Rank(
        rank=None,
        target=target.name,
        provider=target.provider.name,
        model=target.model,
        model_spec=None if known is None else known.model_spec,
        hardware=None if known is None else known.hardware,
        state=standing.state,
        severity=Severity.NONE if worst is None else worst.severity,
        tps=summary.tps,
        ttft_s=summary.ttft_s,
        efficiency=_over(summary.tps, expected),
        uptime=summary.uptime,
        expected_tps=expected,
        ceiling_tps=None if newest is None else newest.ceiling,
        runs=summary.runs,
    )


def _over(speed: Interval | None, expected: float | None) -> Interval | None:
    if speed is None or not expected:
        return None
    return Interval(
        value=speed.value / expected,
        low=None if speed.low is None else speed.low / expected,
        high=None if speed.high is None else speed.high / expected,
        n=speed.n,
    )


def numbered(lines: Sequence[Rank], *, order: Order) -> tuple[Rank, ...]:
    """The lines in order, numbered from 1; those without the figure come last and have no number."""
    there = [(figure, line) for line in lines if (figure := _figure(line, order)) is not None]
    sign = 1.0 if order is Order.TTFT else -1.0
    there.sort(key=lambda pair: (sign * pair[0].value, pair[1].target))
    missing = sorted((line for line in lines if _figure(line, order) is None), key=lambda line: line.target)
    return (*(replace(line, rank=place) for place, (_, line) in enumerate(there, start=1)), *missing)


def _figure(line: Rank, order: Order) -> Interval | None:
    match order:
        case Order.TPS:
            return line.tps
        case Order.TTFT:
            return line.ttft_s
        case Order.EFFICIENCY:
            return line.efficiency
        case Order.UPTIME:
            return line.uptime
