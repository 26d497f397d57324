"""What a figure of a run is called, where it stands, and which runs may enter its statistics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Column, ColumnElement, and_, true

from app.measurement.model import AGAINST_PROVIDER, Outcome
from app.storage.tables import runs


class Metric(StrEnum):
    """What a series shows."""

    TTFT = "ttft"
    TPS = "tps"
    TPOT = "tpot"
    E2E = "e2e"
    GAP = "gap"


class Stat(StrEnum):
    """Which statistic of a step's runs."""

    P50 = "p50"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    MEAN = "mean"
    COUNT = "count"


FRACTION = {Stat.P50: 0.5, Stat.P90: 0.9, Stat.P95: 0.95, Stat.P99: 0.99}
NEEDED = {Stat.P50: 5, Stat.P90: 64, Stat.P95: 130, Stat.P99: 662, Stat.MEAN: 1, Stat.COUNT: 0}
"""Samples that a statistic needs; below, it is null (docs: measurement)."""

UNIT = {Metric.TTFT: "s", Metric.TPS: "tokens/s", Metric.TPOT: "s", Metric.E2E: "s", Metric.GAP: "s"}

_COLUMN: dict[Metric, Column[Any]] = {
    Metric.TTFT: runs.c.ttft_s,
    Metric.TPS: runs.c.decode_tps,
    Metric.TPOT: runs.c.tpot_s,
    Metric.E2E: runs.c.e2e_s,
    Metric.GAP: runs.c.gap_max_s,
}

OK: ColumnElement[bool] = runs.c.outcome == Outcome.OK.value
AGAINST: ColumnElement[bool] = runs.c.outcome.in_(sorted(outcome.value for outcome in AGAINST_PROVIDER))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A column of runs, and the condition under which its value is relied on."""

    column: Column[Any]
    reliable: ColumnElement[bool]


def figure_of(metric: Metric) -> Figure:
    """The figure of a metric. Unreliable and contaminated values are stored and shown, and stay out of statistics."""
    flags = {Metric.TTFT: runs.c.ttft_reliable, Metric.TPS: runs.c.tps_reliable, Metric.TPOT: runs.c.tps_reliable}
    reliable = flags.get(metric)
    return Figure(
        column=_COLUMN[metric],
        reliable=and_(OK, ~runs.c.contaminated, true() if reliable is None else reliable, _COLUMN[metric].is_not(None)),
    )
