"""Counting tokens, and where usage stands: entries 26 to 37."""

import pytest

from app.measurement.dialects import by_name, request_body
from app.measurement.model import Measurement
from app.targets.recipes import BUILTIN
from tests.support.recordings import read
from tests.support.scenarios import BASE, PLAIN, ROLE, TEXT, chunk, data, fin, usage

SHOWN = [ROLE, *PLAIN]
DONE = data("[DONE]")


def ended(*last: bytes) -> Measurement:
    return read([*SHOWN, (600, b"".join(last))])


def test_26_a_chunk_without_choices_breaks_nothing() -> None:
    assert read(BASE).output_tokens == 20


def test_27_usage_in_a_trailing_chunk_without_choices_is_read() -> None:
    m = ended(data(fin()), data(usage(20)), DONE)
    assert (m.output_tokens, m.token_source, m.prompt_tokens) == (20, "usage", 10)


def test_28_usage_on_the_finish_chunk_or_the_one_before_is_read() -> None:
    on_finish = ended(data(fin(usage={"completion_tokens": 20})), DONE)
    before = ended(data(usage(20)), data(fin()), DONE)
    assert [(m.output_tokens, m.token_source) for m in (on_finish, before)] == [(20, "usage")] * 2


def test_29_usage_that_grows_with_each_chunk_is_not_summed() -> None:
    growing = [(200 + 20 * n, data(chunk(content=c, usage={"completion_tokens": n + 1}))) for n, c in enumerate(TEXT)]
    m = read([ROLE, *growing, (600, data(fin()) + DONE)])
    assert (m.output_tokens, m.tpot_s) == (20, 0.02)


def test_30_usage_of_zeros_is_no_count() -> None:
    m = ended(data(fin()), data(usage(0)), DONE)
    assert (m.outcome, m.output_tokens, m.token_source, m.tpot_s) == ("ok", 20, "chunks", 0.02)
    assert ("usage_zero" in m.notes, m.reliable.tps, m.reliable.ttft) == (True, False, True)


def test_31_a_few_tokens_more_than_are_seen_are_special_ones_and_counted() -> None:
    m = ended(data(fin()), data(usage(25)), DONE)
    assert (m.output_tokens, m.token_source, m.ttft_s) == (25, "usage", 0.2)
    assert "usage_disagrees_with_text" not in m.notes


def test_32_without_usage_chunks_are_counted_and_said_to_be() -> None:
    m = ended(data(fin()), DONE)
    assert (m.outcome, m.output_tokens, m.token_source, m.reliable.tps) == ("ok", 20, "chunks", False)
    assert "no_usage" in m.notes


def test_33_a_refused_stream_option_is_left_out_of_the_repeated_call() -> None:
    """The whole exchange, on a socket, is in tests/integration/probe/test_wire.py."""
    recipe = BUILTIN["chat-short"]
    body = request_body(by_name("generic"), model="m", recipe=recipe, prompt="p", without=frozenset({"stream_options"}))
    assert ("stream_options" in body, body["max_tokens"]) == (False, 128)
    refusals = [
        (400, b'{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error"}}'),
        (422, b'{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}'),
    ]
    for status, text in refusals:
        m = read([(5, text)], status=status, content_type="application/json")
        assert (m.outcome, m.error_class, m.ttft_s) == ("bad_request", "bad_request", None)


def test_34_usage_said_twice_is_counted_once() -> None:
    groq = fin(x_groq={"id": "r", "usage": {"completion_tokens": 20, "completion_time": 0.4}})
    m = ended(data(groq), data(usage(20)), DONE)
    assert (m.output_tokens, m.server_timings) == (20, {"completion_s": 0.4})


def test_35_a_first_event_of_filter_results_is_no_token() -> None:
    filtered = {"id": "", "choices": [], "model": "", "object": "", "prompt_filter_results": [{"prompt_index": 0}]}
    m = read([(30, data(filtered)), *BASE])
    assert (m.ttft_s, m.output_tokens) == (0.2, 20)


def test_36_reasoning_left_out_of_completion_is_added() -> None:
    thought = [(200 + 20 * n, data(chunk(reasoning_content=c))) for n, c in enumerate(TEXT[:10])]
    billed = usage(10, total_tokens=30, completion_tokens_details={"reasoning_tokens": 10})
    m = read([*thought, *PLAIN[10:], (600, data(fin()) + data(billed) + DONE)])
    assert (m.output_tokens, m.reasoning_tokens, m.decode_tps) == (20, 10, pytest.approx(50))
    assert "reasoning_outside_completion" in m.notes


def test_37_reasoning_within_completion_is_not_added_again() -> None:
    billed = usage(20, total_tokens=30, completion_tokens_details={"reasoning_tokens": 10})
    thought = [(200 + 20 * n, data(chunk(reasoning=c))) for n, c in enumerate(TEXT[:10])]
    m = read([*thought, *PLAIN[10:], (600, data(fin()) + data(billed) + DONE)])
    assert (m.output_tokens, m.reasoning_tokens) == (20, 10)
