"""What counts as the first token: entries 1 to 10 of the public misreadings (docs/measurement.md, "Known misreadings")."""

from app.measurement.recording import FailureKind
from tests.support.recordings import read
from tests.support.scenarios import BASE, END, PLAIN, TEXT, chunk, data, fin, usage


def test_01_a_chunk_that_only_names_the_role_is_no_token() -> None:
    m = read([(5, data(chunk(role="assistant", content=None))), *PLAIN, *END])
    assert (m.ttft_s, m.output_tokens, m.tpot_s) == (0.2, 20, 0.02)


def test_02_a_role_that_comes_after_the_first_part_of_a_long_prefill_is_no_token() -> None:
    late = [(at + 2000, raw) for at, raw in [*PLAIN, *END]]
    m = read([(900, data(chunk(role="assistant", content=""))), *late])
    assert (m.ttft_s, m.ttft_visible_s, m.tpot_s) == (2.2, 2.2, 0.02)


def test_03_a_role_sent_when_the_request_is_accepted_tells_nothing_of_the_model() -> None:
    assert read([(1, data(chunk(role="assistant", content=""))), *PLAIN, *END]).ttft_s == 0.2


def test_04_content_null_beside_the_role_breaks_nothing_and_counts_for_nothing() -> None:
    m = read([(50, data(chunk(role="assistant", content=None))), *PLAIN, *END])
    assert (m.outcome, m.ttft_s, m.output_tokens) == ("ok", 0.2, 20)


def test_05_a_stream_without_tokens_is_empty_and_has_no_ttft() -> None:
    m = read([(50, data(fin())), (60, data(usage(0)) + data("[DONE]"))])
    assert (m.outcome, m.error_class, m.ttft_s, m.decode_tps, m.reliable.ttft) == ("empty", "empty", None, None, False)


def test_06_what_never_came_is_null_and_never_zero() -> None:
    tool = chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": ""}}])
    only_role = read([(50, data(chunk(role="assistant", content=""))), (60, data(fin()) + data("[DONE]"))])
    only_tool = read([(50, data(chunk(role="assistant"))), (300, data(tool)), (310, data(fin()) + data("[DONE]"))])
    assert (only_role.ttft_s, only_role.tpot_s, only_role.gaps.max_s, only_role.e2e_s) == (None, None, None, None)
    assert (only_tool.ttft_s, only_tool.ttft_visible_s, only_tool.gaps.max_s) == (0.3, None, None)


def test_07_the_first_token_of_a_thought_is_the_first_token() -> None:
    for name in ("reasoning_content", "reasoning"):
        thought = [(200 + 20 * n, data(chunk(**{name: c}))) for n, c in enumerate(TEXT[:10])]
        billed = usage(20, completion_tokens_details={"reasoning_tokens": 10})
        m = read([*thought, *PLAIN[10:], (600, data(fin())), (680, data(billed) + data("[DONE]"))])
        assert (m.ttft_s, m.ttft_visible_s, m.output_tokens, m.reasoning_tokens, m.tpot_s) == (0.2, 0.4, 20, 10, 0.02)


def test_08_a_server_that_sends_every_twentieth_step_is_seen_late_and_its_bundle_is_no_speed() -> None:
    """The first token is where we could see it, 19 steps late, which is noted; the bundle's tokens were made before it."""
    bundles = [(600 + 400 * n, data(chunk(content=TEXT))) for n in range(4)]
    m = read([*bundles, (1900, data(fin())), (1910, data(usage(80)) + data("[DONE]"))])
    assert (m.ttft_s, m.tpot_s, m.output_tokens) == (0.6, 0.02, 80)
    assert "bundled_first_read" in m.notes


def test_09_empty_deltas_during_a_thought_are_no_tokens_and_make_the_speed_doubtful() -> None:
    phantoms = [(200 + 20 * n, data(chunk(content=""))) for n in range(10)]
    m = read([*phantoms, *PLAIN[10:], *END])
    assert (m.ttft_s, m.output_tokens) == (0.4, 20)
    assert "phantom_chunks" in m.notes
    assert (m.reliable.tps, m.reliable.ttft) == (False, False)


def test_10_the_first_token_is_not_the_end() -> None:
    m = read(BASE)
    assert (m.ttft_s, m.e2e_s, m.stream_end_s) == (0.2, 0.58, 0.68)
    late = read(BASE[:-1], failure=FailureKind.STALL)
    assert late.ttft_s == 0.2
