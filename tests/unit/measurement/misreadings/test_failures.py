"""Failures that look like successes, and the other way round: entries 53 to 62."""

import pytest

from app.measurement.progress import progress
from app.measurement.recording import FailureKind
from tests.support.recordings import MS, read, recording
from tests.support.scenarios import BASE, CUT, PLAIN, ROLE, chunk, data, fin, usage

DONE = data("[DONE]")


def test_53_an_error_inside_a_200_is_a_failure() -> None:
    m = read([*CUT, (300, data({"error": {"message": "the engine died", "code": 500}}) + DONE)])
    assert (m.outcome, m.error_class, m.http_status, m.output_tokens) == ("provider_error", "server_error", 200, 5)
    beside = chunk(content="x") | {"error": {"message": "upstream", "code": 502}}
    assert read([*CUT, (300, data(beside) + data(fin()) + DONE)]).error_class == "bad_gateway"


def test_54_an_end_without_a_finish_is_truncated() -> None:
    m = read(CUT)
    assert (m.outcome, m.error_class, m.output_tokens) == ("truncated", "truncated", 5)
    inside = read([*CUT, (300, data(chunk(content="x"))[:-9])])
    assert (inside.outcome, inside.output_tokens) == ("truncated", 5)


def test_55_a_finish_without_done_is_a_success() -> None:
    m = read([*BASE[:-1], (680, data(usage(20)))])
    assert (m.outcome, "no_done" in m.notes, m.reliable.tps) == ("ok", True, True)


def test_56_done_without_a_finish_is_a_success() -> None:
    m = read([ROLE, *PLAIN, (600, data(usage(20)) + DONE)])
    assert (m.outcome, m.finish_reason, m.output_tokens) == ("ok", None, 20)


@pytest.mark.parametrize(
    ("error", "outcome", "error_class"),
    [
        ({"message": "slow down", "type": "rate_limit_exceeded", "code": 429}, "rate_limited", "rate_limited"),
        (
            {"message": "maximum context length is 8192 tokens", "type": "invalid_request_error"},
            "bad_request",
            "context_length",
        ),
        ({"message": "the server is overloaded", "code": 500}, "provider_error", "overloaded"),
        ({"message": "insufficient_quota", "code": 429}, "rate_limited", "quota"),
        ({"message": "invalid api key", "type": "authentication_error"}, "auth", "auth"),
        ({"message": "boom"}, "provider_error", "server_error"),
    ],
)
def test_57_an_error_after_keep_alives_has_the_class_of_its_own_status(
    error: dict[str, object], outcome: str, error_class: str
) -> None:
    m = read([(500, b": ping\n\n"), (1000, b": ping\n\n"), (1500, data({"error": error}))])
    assert (m.outcome, m.error_class, m.http_status, m.ttft_s) == (outcome, error_class, 200, None)


def test_58_a_refused_call_is_refused_and_not_a_slow_success() -> None:
    m = read([(5, b'{"error": {"message": "slow down"}}')], status=429, headers=[("retry-after", "1")])
    assert (m.outcome, m.error_class, m.retry_after_s, m.ttft_s) == ("rate_limited", "rate_limited", 1.0, None)


def test_59_an_error_body_has_no_first_token() -> None:
    body = b'{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
    m = read([(30, body)], status=401, content_type="application/json")
    assert (m.outcome, m.ttft_s, m.output_tokens, m.e2e_s) == ("auth", None, None, None)


def test_60_comments_and_empty_deltas_are_no_progress() -> None:
    """What the stall deadline asks; that it holds on a socket is in tests/integration/probe/test_wire.py."""
    pings = [(1000.0 * n, b": ping\n\n" + data(chunk(content=""))) for n in range(1, 30)]
    seen = progress(recording([*CUT, *pings]).tape)
    assert (seen.has_output, seen.last_output_ns, seen.done) == (True, 280 * MS, False)
    m = read([*CUT, *pings], failure=FailureKind.STALL)
    assert (m.outcome, m.error_class, m.e2e_s) == ("stalled", "stall", 0.28)


def test_61_a_body_that_goes_on_after_done_is_over_at_done() -> None:
    m = read([*BASE, (3680, b": bye\n\n"), (9000, data(chunk(content="late")))])
    assert (m.outcome, m.stream_end_s, m.e2e_s, m.output_tokens) == ("ok", 0.68, 0.58, 20)
    assert progress(recording(BASE).tape).done


def test_62_headers_without_a_token_end_at_the_first_token_deadline_without_a_ttft() -> None:
    m = read([], failure=FailureKind.DEADLINE_FIRST_TOKEN)
    assert (m.outcome, m.error_class, m.ttft_s, m.reliable.ttft) == ("timeout", "timeout", None, False)
    assert read([(10, b": ping\n\n")], failure=FailureKind.DEADLINE_FIRST_TOKEN).outcome == "timeout"
