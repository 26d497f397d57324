"""Totals count every run once, and keep unreliable figures out of the histograms."""

from datetime import UTC, datetime

from app.measurement.model import ErrorClass, Measurement, Outcome, Reliable, Run
from app.measurement.totals import EDGES, Totals, advance_totals

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def run_of(measurement: Measurement) -> Run:
    return Run(
        id="r",
        target="t",
        location="default",
        due_at=NOW,
        started_at=NOW,
        finished_at=NOW,
        provider="p",
        model="m",
        recipe="chat-short",
        measurement=measurement,
    )


def test_a_value_on_an_edge_belongs_to_the_bucket_that_the_edge_closes() -> None:
    m = Measurement(outcome=Outcome.OK, error_class=ErrorClass.NONE, ttft_s=0.2, reliable=Reliable(ttft=True))
    counts = advance_totals(Totals(), run_of(m)).histograms["ttft"].counts
    assert counts[EDGES["ttft"].index(0.2)] == 1
    assert sum(counts) == 1


def test_an_unreliable_figure_is_counted_as_an_outcome_only() -> None:
    m = Measurement(outcome=Outcome.OK, error_class=ErrorClass.NONE, ttft_s=0.2, decode_tps=9999.0)
    totals = advance_totals(Totals(), run_of(m))
    assert totals.outcomes == {Outcome.OK: 1}
    assert not {"ttft", "tps"} & totals.histograms.keys()


def test_a_failure_leaves_the_last_success_where_it_was() -> None:
    ok = advance_totals(Totals(), run_of(Measurement(outcome=Outcome.OK, error_class=ErrorClass.NONE)))
    bad = advance_totals(ok, run_of(Measurement(outcome=Outcome.TIMEOUT, error_class=ErrorClass.TIMEOUT)))
    assert bad.last_success_at == NOW
    assert bad.outcomes == {Outcome.OK: 1, Outcome.TIMEOUT: 1}
