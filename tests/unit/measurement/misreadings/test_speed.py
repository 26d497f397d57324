"""Gaps, time per token, throughput: entries 11 to 25."""

from datetime import timedelta

import pytest

from app.measurement.measure import measure
from tests.support.recordings import NOW, read, recording
from tests.support.scenarios import BASE, CUT, END, PLAIN, ROLE, TEXT, chunk, data, fin, usage


def ms(value: float) -> object:
    return pytest.approx(value / 1000, rel=1e-9)


def test_11_four_chunks_of_five_tokens_are_twenty_tokens_of_twenty_milliseconds() -> None:
    m = read([ROLE, *[(200 + 100 * n, data(chunk(content="abcde"))) for n in range(4)], *END])
    assert (m.tpot_s, m.gaps.p50_s, m.gaps.max_s, m.output_tokens) == (ms(20), ms(100), ms(100), 20)


def test_12_the_tokens_of_a_bundled_first_chunk_are_not_in_the_speed() -> None:
    later = [(220 + 20 * n, data(chunk(content="x"))) for n in range(10)]
    m = read([(200, data(chunk(content="abcdefghij"))), *later, (600, data(fin())), (680, data(usage(20)) + data("[DONE]"))])
    assert (m.tpot_s, m.decode_tps) == (ms(20), pytest.approx(50))


def test_13_chunks_of_speculation_weigh_as_many_tokens_as_they_hold() -> None:
    sizes = (1, 3, 4, 2, 4, 1, 3, 2)
    at, writes = 200, []
    for size in sizes:
        writes.append((at, data(chunk(content="x" * size))))
        at += 8
    m = read([*writes, (600, data(fin())), (680, data(usage(sum(sizes))) + data("[DONE]"))])
    assert (m.output_tokens, m.tpot_s, m.gaps.p50_s) == (20, ms(8 * 7 / 19), ms(8))


def test_14_ten_chunks_of_two_tokens_are_twenty_and_ttft_is_no_gap() -> None:
    pairs = [(200 + 40 * n, data(chunk(content="ab"))) for n in range(10)]
    m = read([*pairs, (600, data(fin())), (680, data(usage(20)) + data("[DONE]"))])
    assert (m.output_tokens, m.token_source, m.tpot_s, m.gaps.max_s) == (20, "usage", ms(20), ms(40))


def test_15_a_word_cut_over_two_chunks_is_as_many_tokens_as_the_server_says() -> None:
    pieces = [(200 + 20 * n, data(chunk(content=c))) for n, c in enumerate(["Hel", "lo", " wor", "ld"] * 5)]
    assert read([*pieces, *END]).output_tokens == 20
    unsaid = read([*pieces, (600, data(fin()) + data("[DONE]"))])
    assert (unsaid.output_tokens, unsaid.token_source, unsaid.reliable.tps) == (20, "chunks", False)


def test_16_the_fastest_read_is_no_slower_than_the_mean() -> None:
    reading = measure(recording([ROLE, *[(200 + 100 * n, data(chunk(content="abcde"))) for n in range(4)], *END]))
    stamps, tokens = reading.read_stamps_s, reading.read_tokens
    peak = max(n / (b - a) for a, b, n in zip(stamps, stamps[1:], tokens[1:], strict=False))
    assert reading.measurement.decode_tps is not None
    assert peak >= reading.measurement.decode_tps - 1e-9
    assert sum(tokens) == pytest.approx(20)


def test_17_usage_that_comes_later_moves_the_end_of_the_stream_and_no_token() -> None:
    m = read(BASE)
    assert (m.e2e_s, m.stream_end_s, m.tpot_s) == (0.58, 0.68, ms(20))


def test_18_decode_speed_is_without_the_wait_and_e2e_speed_with_it() -> None:
    m = read([(at + 4800, raw) for at, raw in BASE])
    assert (m.ttft_s, m.decode_tps, m.e2e_tps) == (5.0, pytest.approx(50), pytest.approx(20 / 5.38))


def test_19_an_answer_in_a_burst_after_a_buffered_thought_has_no_speed() -> None:
    burst = [(5000 + n / 10, data(chunk(content="x" * 20))) for n in range(40)]
    billed = usage(840, completion_tokens_details={"reasoning_tokens": 400})
    m = read([*burst, (5010, data(fin()) + data(billed) + data("[DONE]"))])
    assert (m.ttft_s, m.decode_tps, m.reliable.tps, m.reliable.ttft) == (5.0, None, False, False)
    assert "hidden_reasoning" in m.notes
    open_burst = read([*burst, (5010, data(fin()) + data(usage(400)) + data("[DONE]"))])
    assert (open_burst.decode_tps, "short_window" in open_burst.notes) == (None, True)


def test_20_a_buffered_tool_call_has_no_speed() -> None:
    name = chunk(tool_calls=[{"index": 0, "id": "c", "function": {"name": "look", "arguments": ""}}])
    rest = chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"where": "everywhere"}'}}])
    end = data(fin()) + data(usage(40)) + data("[DONE]")
    m = read([ROLE, (200, data(name)), (1000, data(rest)), (1001, end)])
    assert (m.outcome, m.ttft_s, m.output_tokens, m.decode_tps, "few_reads" in m.notes) == ("ok", 0.2, 40, None, True)


def test_21_what_a_proxy_held_back_has_a_late_first_token_and_no_speed() -> None:
    m = read([(600, b"".join(raw for _, raw in BASE))])
    assert (m.ttft_s, m.tpot_s, m.reliable.ttft, m.reliable.tps) == (0.6, None, False, False)
    assert {"buffered_by_proxy", "few_reads"} <= set(m.notes)


def test_22_a_stall_is_seen_beside_the_mean() -> None:
    stalled = [*PLAIN[:10], *((at + 5000, raw) for at, raw in [*PLAIN[10:], *END])]
    m = read(stalled)
    assert (m.gaps.stalls, m.gaps.max_s, m.gaps.p50_s) == (1, ms(5020), ms(20))
    assert read(BASE).gaps.stalls == 0


def test_23_a_failed_run_has_figures_to_look_at_and_none_to_count() -> None:
    m = read([*CUT, (300, data({"error": {"message": "died", "code": 500}}) + data("[DONE]"))])
    assert (m.outcome, m.ttft_s, m.output_tokens, m.reliable.ttft, m.reliable.tps) == ("provider_error", 0.2, 5, False, False)


def test_24_a_step_of_the_wall_clock_moves_no_figure() -> None:
    """Marks are of the monotonic clock; how kernel stamps are kept from steps is in tests/unit/probe/test_stamps.py."""
    stepped = measure(recording(BASE, now=NOW - timedelta(days=400))).measurement
    assert stepped == measure(recording(BASE)).measurement


def test_25_a_chunk_is_an_event_with_output_of_any_kind() -> None:
    kinds = [
        chunk(content=TEXT[0]),
        chunk(reasoning_content="r"),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]),
        chunk(refusal="no"),
    ]
    nothing = [chunk(role="assistant"), chunk(content=""), chunk(tool_calls=[]), chunk(reasoning=None), usage(4)]
    writes = [(200 + 20 * n, data(each)) for n, each in enumerate([*kinds, *nothing])]
    m = read([*writes, (600, data(fin()) + data("[DONE]"))])
    assert (m.output_events, m.output_reads, m.e2e_s) == (4, 4, 0.26)
