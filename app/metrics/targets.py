"""Metric families of what is watched. Paused targets have no series; what did not happen has no sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from math import inf

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from app.measurement.model import Outcome
from app.measurement.totals import EDGES, Histogram
from app.metrics.snapshot import Cell, Direction, Watched
from app.verdict.model import State

PHASES = ("dns", "connect", "tls", "send", "wait")
Row = tuple[Watched, str, Cell]


def target_families(watched: Iterable[Watched]) -> Iterator[Metric]:
    """All families with a label `target`, for the targets that are not paused."""
    active = [each for each in watched if not each.target.paused]
    rows = [(each, place, each.cells.get(place, Cell())) for each in active for place in each.target.locations]
    yield _info(active)
    yield _runs(rows)
    yield _phases(rows)
    yield from _histograms(rows)
    yield _tokens(active)
    yield _cost(active)
    yield from _per_target(active)
    yield from _per_place(rows)
    yield _verdicts(rows)


def _info(active: Iterable[Watched]) -> Metric:
    labels = ("target", "provider", "model", "hardware", "quantization", "recipe")
    family = GaugeMetricFamily("bandwatch_target_info", "What a target is; always 1.", labels=labels)
    for each in active:
        target, known = each.target, each.target.deployment
        hardware = (known.hardware if known is not None else None) or "unknown"
        quantization = (known.quantization if known is not None else None) or "unknown"
        family.add_metric((target.name, target.provider.name, target.model, hardware, quantization, target.recipe.name), 1.0)
    return family


def _runs(rows: Iterable[Row]) -> Metric:
    family = CounterMetricFamily(
        "bandwatch_probe_runs", "Probes by what came of them.", labels=("target", "location", "outcome")
    )
    for each, place, cell in rows:
        for outcome in Outcome:
            family.add_metric((each.target.name, place, outcome), cell.totals.outcomes.get(outcome, 0))
    return family


def _phases(rows: Iterable[Row]) -> Metric:
    family = HistogramMetricFamily(
        "bandwatch_probe_phase_seconds",
        "Seconds of the phases of a probe.",
        labels=("target", "location", "phase", "connection"),
    )
    for each, place, cell in rows:
        for connection in ("cold", "warm"):
            for phase in PHASES:
                key = f"phase:{phase}:{connection}"
                if key in cell.totals.histograms or connection == each.target.connection:
                    _add(family, (each.target.name, place, phase, connection), cell, key)
    return family


_HISTOGRAMS = (
    ("ttft", "bandwatch_time_to_first_token_seconds", "Seconds from the request's last byte to the first output token."),
    ("tpot", "bandwatch_time_per_output_token_seconds", "Seconds per output token after the first."),
    ("tps", "bandwatch_output_tokens_per_second", "Output tokens per second after the first, of one stream."),
    ("duration", "bandwatch_probe_duration_seconds", "Seconds from the start of a probe to its end."),
)


def _histograms(rows: list[Row]) -> Iterator[Metric]:
    for key, name, text in _HISTOGRAMS:
        family = HistogramMetricFamily(name, text, labels=("target", "location"))
        for each, place, cell in rows:
            _add(family, (each.target.name, place), cell, key)
        yield family


def _add(family: HistogramMetricFamily, labels: tuple[str, ...], cell: Cell, key: str) -> None:
    """One label set with cumulative buckets; one that has counted nothing yet is there with zeros."""
    edges = EDGES[key]
    histogram = cell.totals.histograms.get(key) or Histogram(counts=(0,) * (len(edges) + 1))
    buckets, below = [], 0
    for edge, count in zip((*edges, inf), histogram.counts, strict=True):
        below += count
        buckets.append(("+Inf" if edge == inf else repr(edge), below))
    family.add_metric(labels, buckets=buckets, sum_value=histogram.total)


def _tokens(active: Iterable[Watched]) -> Metric:
    family = CounterMetricFamily(
        "bandwatch_probe_tokens", "Tokens that probes sent (in) and got (out).", labels=("target", "direction")
    )
    for each in active:
        family.add_metric((each.target.name, Direction.IN), sum(cell.totals.tokens_in for cell in each.cells.values()))
        family.add_metric((each.target.name, Direction.OUT), sum(cell.totals.tokens_out for cell in each.cells.values()))
    return family


def _cost(active: Iterable[Watched]) -> Metric:
    family = CounterMetricFamily("bandwatch_probe_cost_usd", "What probes cost, where prices are known.", labels=("target",))
    for each in active:
        family.add_metric((each.target.name,), sum(cell.totals.cost_usd for cell in each.cells.values()))
    return family


def _per_target(active: list[Watched]) -> Iterator[Metric]:
    gauges: Mapping[str, tuple[str, Callable[[Watched], float | None]]] = {
        "bandwatch_target_interval_seconds": ("Seconds between two probes.", lambda each: each.target.every_s),
        "bandwatch_expected_tokens_per_second": (
            "Output tokens per second that one stream should reach.",
            lambda each: each.expected_tps,
        ),
        "bandwatch_ceiling_tokens_per_second": (
            "Output tokens per second that no honest deployment passes.",
            lambda each: each.ceiling_tps,
        ),
    }
    for name, (text, figure) in gauges.items():
        family = GaugeMetricFamily(name, text, labels=("target",))
        for each in active:
            if (value := figure(each)) is not None:
                family.add_metric((each.target.name,), value)
        yield family


def _per_place(rows: list[Row]) -> Iterator[Metric]:
    gauges: Mapping[str, tuple[str, Callable[[Cell], float | None]]] = {
        "bandwatch_probe_max_gap_seconds": (
            "The longest gap between two output reads of the last successful probe.",
            lambda cell: cell.totals.last_max_gap_s,
        ),
        "bandwatch_expectation_ratio": (
            "Observed over expected output tokens per second.",
            lambda cell: None if cell.verdict is None else cell.verdict.ratio,
        ),
        "bandwatch_ceiling_ratio": (
            "Observed over ceiling output tokens per second.",
            lambda cell: None if cell.verdict is None else cell.verdict.ceiling_ratio,
        ),
        "bandwatch_target_last_run_timestamp_seconds": (
            "When the last probe ended, Unix time.",
            lambda cell: _unix(cell.totals.last_run_at),
        ),
        "bandwatch_target_last_success_timestamp_seconds": (
            "When the last successful probe ended, Unix time.",
            lambda cell: _unix(cell.totals.last_success_at),
        ),
    }
    for name, (text, figure) in gauges.items():
        family = GaugeMetricFamily(name, text, labels=("target", "location"))
        for each, place, cell in rows:
            if (value := figure(cell)) is not None:
                family.add_metric((each.target.name, place), value)
        yield family


def _verdicts(rows: Iterable[Row]) -> Metric:
    family = GaugeMetricFamily(
        "bandwatch_verdict",
        "1 for the state that is said of a target, 0 for the others.",
        labels=("target", "location", "state"),
    )
    for each, place, cell in rows:
        said = State.UNKNOWN if cell.verdict is None else cell.verdict.state
        for state in State:
            family.add_metric((each.target.name, place, state), float(state is said))
    return family


def _unix(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
