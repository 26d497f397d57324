"""Running totals of one (target, location): what Prometheus counters and histograms are made of.

They live in Postgres and are advanced in the transaction that stores the run, so they never disagree with the runs,
survive restarts, and read the same from every replica.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from app.measurement.model import Outcome, Run

TTFT_EDGES_S = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 30.0, 60.0, 120.0)
TPOT_EDGES_S = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0)
TPS_EDGES = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0, 1000.0, 2000.0, 5000.0)
PHASE_EDGES_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
DURATION_EDGES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)

EDGES: Mapping[str, tuple[float, ...]] = {
    "ttft": TTFT_EDGES_S,
    "tpot": TPOT_EDGES_S,
    "tps": TPS_EDGES,
    "duration": DURATION_EDGES_S,
    **{
        f"phase:{phase}:{connection}": PHASE_EDGES_S
        for phase in ("dns", "connect", "tls", "send", "wait")
        for connection in ("cold", "warm")
    },
}
"""Upper edges of each histogram, ascending; a last bucket, +Inf, is implied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts per bucket (one more than edges, the last is +Inf; not cumulative) and the sum of the values."""

    counts: tuple[int, ...]
    total: float = 0.0

    def add(self, value: float, *, edges: tuple[float, ...]) -> Histogram:
        """With one more value; a value on an edge belongs to the bucket that the edge closes (`le`)."""
        index = bisect_left(edges, value)
        counts = (*self.counts[:index], self.counts[index] + 1, *self.counts[index + 1 :])
        return Histogram(counts=counts, total=self.total + value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Everything counted of one (target, location) since it was first seen."""

    outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    last_run_at: datetime | None = None
    last_success_at: datetime | None = None
    last_max_gap_s: float | None = None


def advance_totals(totals: Totals, run: Run) -> Totals:
    """Totals with one more run. Unreliable figures are counted as outcomes, and stay out of the histograms."""
    m = run.measurement
    values: dict[str, float | None] = {
        "ttft": m.ttft_s if m.reliable.ttft else None,
        "tpot": m.tpot_s if m.reliable.tps else None,
        "tps": m.decode_tps if m.reliable.tps else None,
        "duration": m.total_s,
    }
    for phase in ("dns", "connect", "tls", "send", "wait"):
        values[f"phase:{phase}:{m.connection}"] = getattr(m.phases, f"{phase}_s")
    histograms = dict(totals.histograms)
    for name, value in values.items():
        if value is not None:
            edges = EDGES[name]
            histograms[name] = histograms.get(name, Histogram(counts=(0,) * (len(edges) + 1))).add(value, edges=edges)
    ok = m.outcome is Outcome.OK
    return Totals(
        outcomes={**totals.outcomes, m.outcome: totals.outcomes.get(m.outcome, 0) + 1},
        histograms=histograms,
        tokens_in=totals.tokens_in + (m.prompt_tokens or 0),
        tokens_out=totals.tokens_out + (m.output_tokens or 0),
        cost_usd=totals.cost_usd + (run.cost_usd or 0.0),
        last_run_at=run.finished_at,
        last_success_at=run.finished_at if ok else totals.last_success_at,
        last_max_gap_s=m.gaps.max_s if ok else totals.last_max_gap_s,
    )
