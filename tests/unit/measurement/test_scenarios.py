"""The 24 streams that today's tools misread, read right, with exact times."""

import pytest

from app.measurement.recording import FailureKind
from tests.support.recordings import read
from tests.support.scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_a_stream_that_tools_misread_is_read_right(scenario: Scenario) -> None:
    m = read(
        scenario.writes,
        status=scenario.status,
        content_type="text/event-stream" if scenario.status == 200 else "application/json",
        failure=FailureKind.RESET if scenario.end == "reset" else None,
    )
    assert (m.outcome, m.error_class) == (scenario.outcome, scenario.error_class)
    assert m.output_tokens == scenario.tokens
    assert m.ttft_s == (None if scenario.ttft_ms is None else scenario.ttft_ms / 1000)
    assert m.tpot_s == (None if scenario.tpot_ms is None else pytest.approx(scenario.tpot_ms / 1000, rel=1e-9))
    if scenario.visible_ms is not None:
        assert m.ttft_visible_s == scenario.visible_ms / 1000
    assert scenario.notes <= set(m.notes)
