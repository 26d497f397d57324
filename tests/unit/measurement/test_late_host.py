"""A host that was late, or stood still, blames no provider for what it missed."""

import pytest

from app.measurement.measure import measure
from app.measurement.model import ErrorClass, Outcome
from app.measurement.recording import Failure, FailureKind, HostHealth, Marks, Recording
from tests.support.runs import NOW


def recording(kind: FailureKind, *, lag_s: float | None, lasted_s: float = 60.0) -> Recording:
    marks = Marks(started=0, connected=1, request_sent=2, closed=int(lasted_s * 1e9))
    one = Recording(base_url="", model="m", recipe="chat-short", dialect="openai", marks=marks, started_at=NOW)
    one.failure = Failure(kind=kind, text="no output within 60 s")
    one.host = HostHealth(loop_lag_p99_s=lag_s, loop_lag_max_s=lag_s)
    return one


@pytest.mark.parametrize(
    ("kind", "lag_s", "outcome"),
    [
        (FailureKind.DEADLINE_FIRST_TOKEN, 0.02, Outcome.TIMEOUT),
        (FailureKind.DEADLINE_FIRST_TOKEN, 2.9, Outcome.TIMEOUT),
        (FailureKind.DEADLINE_FIRST_TOKEN, 3.1, Outcome.LOCAL_ERROR),
        (FailureKind.DEADLINE_CONNECT, 30.0, Outcome.LOCAL_ERROR),
        (FailureKind.DEADLINE_TOTAL, None, Outcome.TIMEOUT),
        (FailureKind.DEADLINE_TOTAL, 0.4, Outcome.TIMEOUT),
        (FailureKind.STALL, 50.0, Outcome.LOCAL_ERROR),
        (FailureKind.RESET, 20.0, Outcome.PROVIDER_ERROR),
        (FailureKind.RESET, 31.0, Outcome.LOCAL_ERROR),
        (FailureKind.BUDGET, 59.0, Outcome.SKIPPED_BUDGET),
    ],
)
def test_what_a_late_host_missed_is_its_own_fault(kind: FailureKind, lag_s: float | None, outcome: Outcome) -> None:
    assert measure(recording(kind, lag_s=lag_s)).measurement.outcome is outcome


def test_it_says_by_how_much_it_was_late_and_what_it_saw() -> None:
    m = measure(recording(FailureKind.DEADLINE_FIRST_TOKEN, lag_s=30.0)).measurement
    assert (m.error_class, m.error_text) == (ErrorClass.LOCAL, "this host was 30.0 s late meanwhile: no output within 60 s")


def test_a_recording_that_was_never_closed_blames_nobody_new() -> None:
    one = recording(FailureKind.DEADLINE_TOTAL, lag_s=30.0)
    one.marks.closed = None
    assert measure(one).measurement.outcome is Outcome.TIMEOUT
