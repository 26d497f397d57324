"""A verdict is worth something while runs renew it, and nothing after."""

from datetime import timedelta

from app.verdict.freshness import as_of
from app.verdict.model import Severity, State
from tests.support.verdicts import NOW, an_expectation, speeds, verdict_of


def test_a_verdict_that_no_run_renews_is_unknown_after_three_intervals() -> None:
    verdict = verdict_of(speeds(*[30.0] * 6), expectation=an_expectation())
    last = NOW + timedelta(seconds=180)
    assert as_of(verdict, every_s=60.0, now=last) is verdict
    stale = as_of(verdict, every_s=60.0, now=last + timedelta(seconds=1))
    assert (stale.state, stale.severity, stale.reasons) == (State.UNKNOWN, Severity.NONE, ("stale",))
    assert (stale.since, stale.checked_at, stale.observed, stale.expected) == (last, NOW, None, 100.0)
    assert "is the worker of this location running?" in stale.explanation
