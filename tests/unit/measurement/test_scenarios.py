"""The 24 streams that today's tools misread, read right, with exact times."""

from array import array
from datetime import UTC, datetime

import pytest

from app.measurement.measure import measure
from app.measurement.recording import Failure, FailureKind, Marks, Recording, StampSource, Tape
from tests.support.scenarios import SCENARIOS, Scenario

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MS = 1_000_000


def recording_of(scenario: Scenario) -> Recording:
    body, stamps, ends = b"", array("q"), array("q")
    for at, raw in scenario.writes:
        body += raw
        stamps.append(at * MS)
        ends.append(len(body))
    return Recording(
        base_url="",
        model="",
        recipe="chat-short",
        dialect="generic",
        marks=Marks(started=0, request_sent=0, closed=scenario.writes[-1][0] * MS),
        started_at=NOW,
        tape=Tape(body=body, stamps=stamps, ends=ends),
        status=scenario.status,
        headers=(("content-type", "text/event-stream" if scenario.status == 200 else "application/json"),),
        ended=scenario.end == "close",
        failure=Failure(kind=FailureKind.RESET, text="reset") if scenario.end == "reset" else None,
        stamp_source=StampSource.KERNEL,
    )


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_a_stream_that_tools_misread_is_read_right(scenario: Scenario) -> None:
    m = measure(recording_of(scenario)).measurement
    assert (m.outcome, m.error_class) == (scenario.outcome, scenario.error_class)
    assert m.output_tokens == scenario.tokens
    assert m.ttft_s == (None if scenario.ttft_ms is None else scenario.ttft_ms / 1000)
    assert m.tpot_s == (None if scenario.tpot_ms is None else pytest.approx(scenario.tpot_ms / 1000, rel=1e-9))
    if scenario.visible_ms is not None:
        assert m.ttft_visible_s == scenario.visible_ms / 1000
    assert scenario.notes <= set(m.notes)
