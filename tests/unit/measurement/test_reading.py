"""What single places of a stream may hold, and laws of reading that hold for all of them."""

import ast
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.measurement.chunked import unchunk
from app.measurement.classify import classify
from app.measurement.measure import measure
from app.measurement.recording import StampSource, Tape
from app.measurement.stream import read_stream
from app.measurement.usage import count
from app.targets.recipes import BUILTIN
from tests.support.recordings import Writes, read, recording
from tests.support.scenarios import BASE, END, PLAIN, ROLE, TEXT, chunk, data, fin, usage

ROOT = Path(__file__).parents[3]


def one(**delta: Any) -> bytes:
    return data(chunk(**delta))


@pytest.mark.parametrize(
    ("delta", "reasoning"),
    [
        ({"reasoning": "abc"}, "abc"),
        ({"reasoning_content": "abc", "reasoning": "abc"}, "abc"),
        ({"thinking": "abc"}, "abc"),
        ({"reasoning_text": "abc"}, "abc"),
        ({"reasoning": [{"summary": [{"text": "ab"}, {"text": "c"}]}]}, "abc"),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "abc"}]}, "abc"),
        ({"reasoning": "abc", "reasoning_details": [{"text": "abc"}]}, "abc"),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "abc"}]}]}, "abc"),
        ({"reasoning": {"x": 1}, "reasoning_details": [{"x": 1}, 5]}, ""),
    ],
)
def test_a_thought_is_read_once_under_all_its_names(delta: dict[str, Any], reasoning: str) -> None:
    assert "".join(read_stream(one(**delta)).reasoning) == reasoning


def test_content_lists_hold_text_and_thoughts() -> None:
    stream = read_stream(one(content=["a", {"type": "text", "text": "b"}, {"type": "thinking", "thinking": "c"}, 5]))
    assert ("".join(stream.content), "".join(stream.reasoning)) == ("ab", "c")


def test_text_completions_errors_by_type_and_calls_of_the_old_kind_are_read() -> None:
    old = read_stream(data({"choices": [{"text": "abc", "index": 0, "finish_reason": "length"}]}))
    assert ("".join(old.content), old.finish_reason) == ("abc", "length")
    for error in ({"object": "error", "message": "x"}, {"type": "error", "message": "x"}, {"x_groq": {"error": "x"}}):
        assert len(read_stream(data(error)).errors) == 1
    call = read_stream(one(function_call={"name": "f", "arguments": "{}"}))
    assert (call.outputs[0].chars, call.first["tool"]) == (3, 0)
    assert read_stream(one(tool_calls=["x", {"function": 3}, {"function": {"name": 5}}])).outputs[0].chars == 0


def test_what_is_json_and_no_object_says_nothing() -> None:
    stream = read_stream(b"data: [1]\n\ndata: 3\n\ndata: null\n\ndata: {} [] {}\n\n")
    assert (stream.events, stream.undecodable, stream.outputs) == (4, False, [])


def test_a_cut_event_with_anything_but_an_error_behind_it_is_no_json() -> None:
    assert read_stream(b'data: {"cut\ndata: {"a": 1}\ndata: 3\n\n').undecodable
    assert not read_stream(b'data: {"cut\ndata: {"error": "x"}\n\n').undecodable


def test_an_error_may_be_an_event_under_another_status_than_200() -> None:
    m = read([(5, data({"error": {"message": "no such thing", "code": "model_not_found"}}))], status=400)
    assert (m.outcome, m.error_text) == ("not_found", "no such thing")


def test_ollamas_last_line_may_come_alone_and_say_no_counts() -> None:
    stream = read_stream(b'{"done": true}\n{"message": {"content": "late"}, "done": false}\n')
    assert (stream.kind, stream.finish_reason, stream.usages, stream.events, stream.outputs) == ("ndjson", "stop", [], 2, [])
    cut = read_stream(b'{"message":{"content":"a"},"done":false}\n{"message":{"con', content_type="application/jsonl")
    assert (cut.events, cut.cut_off) == (1, True)
    whole = read_stream(b'\n{"message":{"content":"a"},"done":false}\n{"done":true}', content_type="application/jsonl")
    assert (whole.events, whole.done_seen) == (2, True)
    long = b'{"message":{"content":"' + b"x" * 1_100_000 + b'"},"done":false}\n'
    assert read_stream(long, content_type="application/x-ndjson").oversize


def test_an_oversized_event_ends_the_run_and_only_it() -> None:
    stream = read_stream(b"data: " + b"x" * 1_100_000 + b"\n\n" + one(content="a"))
    assert (stream.oversize, len(stream.outputs)) == (True, 1)


@pytest.mark.parametrize(
    ("pieces", "began", "think"),
    [
        (["a"], 0, None),
        (["\n", " ", "a"], 2, None),
        (["<think>", "x", "</think>", "\n", "a"], 4, "closed"),
        (["<th", "ink>x</thi", "nk>", "a"], 3, "closed"),
        (["<think>x</think>a"], 0, "closed"),
        (["<think>", "x"], None, "open"),
        (["<", "b>"], 0, None),
        (["<th"], 0, None),
        (["a", "<think>"], 0, None),
        ([" "], None, None),
        ([""], None, None),
    ],
)
def test_what_is_visible_begins_after_blanks_and_a_thought(pieces: list[str], began: int | None, think: str | None) -> None:
    stream = read_stream(b"".join(one(content=piece) for piece in pieces))
    assert (stream.first.get("visible"), stream.think) == (began, think)


def test_tokens_of_reads_come_from_usage_so_far_or_from_characters_or_evenly() -> None:
    def tokens(writes: Writes) -> tuple[float, ...]:
        return measure(recording(writes)).read_tokens

    so_far = [(200 + 20 * n, data(chunk(content="x", usage={"completion_tokens": 4 * (n + 1)}))) for n in range(5)]
    assert tokens([*so_far, (600, data(fin()) + data(usage(20)))]) == (4, 4, 4, 4, 4)
    by_length = [(200, one(content="x" * 30)), (220, one(content="x" * 10)), (600, data(fin()) + data(usage(20)))]
    assert tokens(by_length) == (15, 5)
    call = {"tool_calls": [{"index": 0, "id": "c"}]}
    evenly = [(200, one(**call)), (220, one(**call)), (600, data(fin()) + data(usage(20)))]
    assert tokens(evenly) == (10, 10)


def test_a_warm_prefix_is_meant_to_be_cached_and_any_other_prompt_is_not() -> None:
    cached = usage(20, prompt_tokens_details={"cached_tokens": 9})
    writes = [ROLE, *PLAIN, (600, data(fin()) + data(cached) + data("[DONE]"))]
    plain, warm = read(writes), read(writes, recipe="warm-prefix")
    assert (plain.reliable.ttft, warm.reliable.ttft, plain.unreliable_because["ttft"]) == (False, True, ("cached_prompt",))
    assert "cached_prompt" in warm.notes
    half = usage(20, prompt_tokens_details={"cached_tokens": 5})
    assert read([ROLE, *PLAIN, (600, data(fin()) + data(half) + data("[DONE]"))]).reliable.ttft


@pytest.mark.parametrize(
    ("given", "output", "notes"),
    [
        ([], None, ("no_usage",)),
        ([{"completion_tokens": None}], None, ("no_usage",)),
        ([{"completion_tokens": True}], None, ("no_usage",)),
        ([{"completion_tokens": -3}], None, ("no_usage",)),
        ([{"completion_tokens": 7}, {"completion_tokens": None, "prompt_tokens": 2}], 7, ()),
        ([{"completion_tokens": 0}], None, ("usage_zero",)),
        (
            [{"completion_tokens": 2, "reasoning_tokens": 198, "prompt_tokens": 10, "total_tokens": 210}],
            200,
            ("reasoning_outside_completion",),
        ),
        ([{"completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 11}}], 10, ("usage_contradictory",)),
        ([{"completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 4}}], 10, ()),
        ([{"completion_tokens": 10.0}], 10, ()),
    ],
)
def test_usage_is_counted(given: list[dict[str, Any]], output: int | None, notes: tuple[str, ...]) -> None:
    found = count(given)
    assert (found.output_tokens, found.notes) == (output, notes)


def test_cached_tokens_are_found_under_three_names() -> None:
    for each in ({"prompt_tokens_details": {"cached_tokens": 5}}, {"prompt_cache_hit_tokens": 5}, {"num_cached_tokens": 5}):
        assert count([{"completion_tokens": 1, **each}]).cached_tokens == 5


@pytest.mark.parametrize(
    ("raw", "body", "ended", "broken"),
    [
        (b"3\r\nabc\r\n0\r\n\r\n", b"abc", True, False),
        (b"3;name=value\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde", True, False),
        (b"3\r\nab", b"ab", False, False),
        (b"3\r\n", b"", False, False),
        (b"3", b"", False, False),
        (b"", b"", False, False),
        (b"3\r\nabc\r\nxyz\r\n", b"abc", False, True),
        (b"\r\nabc", b"", False, True),
        (b"-3\r\nabc", b"", False, True),
        (b"11111111111111111\r\nabc", b"", False, True),
    ],
)
def test_chunked_coding_is_undone_wherever_it_ends(raw: bytes, body: bytes, *, ended: bool, broken: bool) -> None:
    found = unchunk(raw)
    assert (found.body, found.ended, found.broken) == (body, ended, broken)
    counts = list(found.available(range(len(raw) + 1)))
    assert counts == sorted(counts)
    assert counts[-1] == len(body)


def test_reads_of_a_replayed_body_are_as_given() -> None:
    assert list(Tape.replayed(b"abcdef", read_sizes=[2, 3]).ends) == [2, 5, 6]
    assert list(Tape.replayed(b"abcdef", read_sizes=[2, 4]).ends) == [2, 6]
    assert list(Tape.replayed(b"abcdef", read_sizes=[9]).ends) == [6]
    assert list(Tape.replayed(b"").ends) == [0]


def test_a_recording_without_any_reads_has_no_figures_but_an_outcome() -> None:
    nothing = recording([])
    m = measure(nothing).measurement
    assert (m.outcome, m.ttft_s, m.stream_end_s, m.output_reads) == ("empty", None, None, 0)
    assert classify(nothing, read_stream(b"")).text == "a 200 without a body"
    untimed = read(BASE, stamps=StampSource.NONE)
    assert (untimed.outcome, untimed.ttft_s, untimed.decode_tps, untimed.output_tokens) == ("ok", None, None, 20)


def test_usage_that_cannot_belong_to_the_text_spoils_the_speed() -> None:
    few = read([ROLE, *PLAIN, (600, data(fin()) + data(usage(8)) + data("[DONE]"))])
    long = read([(200 + 20 * n, one(content="x" * 100)) for n in range(20)] + END)
    for m in (few, long):
        assert (m.reliable.tps, m.reliable.ttft, m.unreliable_because["tps"][-1]) == (False, True, "usage_disagrees_with_text")


def test_many_events_in_the_first_read_make_its_stamp_doubtful() -> None:
    bundle = b"".join(raw for _, raw in PLAIN[:8])
    m = read([ROLE, (340, bundle), *PLAIN[8:], *END])
    assert (m.unreliable_because["ttft"], m.reliable.ttft, m.reliable.tps) == (("coalesced_first_read",), False, True)
    assert m.tpot_s == pytest.approx(0.02)


def test_lag_of_the_host_spoils_what_it_could_have_moved() -> None:
    assert read(BASE, lag_s=0.5).reliable.ttft  # the kernel stamped every event by itself
    two = [ROLE, (200, PLAIN[0][1]), *PLAIN[1:-2], (580, PLAIN[-2][1] + PLAIN[-1][1]), *END]
    m = read(two, lag_s=0.1)
    assert (m.reliable.ttft, m.unreliable_because["tps"]) == (True, ("contaminated",))
    assert read(two, lag_s=0.001).reliable.tps
    assert read(BASE, lag_s=0.012, stamps=StampSource.LOOP).unreliable_because == {"ttft": ("contaminated",), "tps": ()}


def test_every_reason_code_is_documented_and_none_is_made_up() -> None:
    page = (ROOT / "docs" / "measurement.md").read_text()
    table = page[page.index("| note | spoils") : page.index("## Reading a stream")]
    told = set(re.findall(r"`([a-z_]+)`", " ".join(row.split("|")[1] for row in table.splitlines() if row.startswith("|"))))
    made = set()
    for name in ("reliability", "usage", "figures"):
        for node in ast.walk(ast.parse((ROOT / "app" / "measurement" / f"{name}.py").read_text())):
            match node:
                case (
                    ast.Yield(value=ast.Constant(value=str(code)))
                    | ast.Return(value=ast.Tuple(elts=[_, ast.Constant(value=str(code))]))
                ):
                    made.add(code)
                case ast.Call(func=ast.Attribute(attr="add"), args=[ast.Constant(value=str(code))]):
                    made.add(code)
                case _:
                    pass
    assert len(made) >= 18
    assert made - told == set()
    assert told - made <= {"no_usage", "recording_cut"}


def test_the_recipes_of_the_page_are_those_of_the_program() -> None:
    page = (ROOT / "docs" / "measurement.md").read_text()
    assert [name for name in BUILTIN if f"`{name}`" not in page] == []


sizes = st.lists(st.integers(1, 400), min_size=1, max_size=60)
comments = st.lists(st.integers(0, len(BASE) - 1), max_size=10)
kinds = st.lists(st.sampled_from(["content", "reasoning", "refusal", "empty", "think"]), min_size=1, max_size=30)


def stream_of(kinds_: list[str]) -> bytes:
    written = []
    for kind in kinds_:
        match kind:
            case "empty":
                written.append(one(content=""))
            case "think":
                written.append(one(content="<think>x</think>"))
            case _:
                written.append(one(**{kind: "ab "}))
    return b"".join(written) + data(fin()) + data(usage(len(kinds_))) + data("[DONE]")


@given(kinds_=kinds, cuts=sizes, gaps=st.lists(st.integers(1, 500), min_size=60, max_size=60))
@settings(max_examples=150, deadline=None)
def test_marks_never_run_backwards_and_tokens_are_all_given_out(kinds_: list[str], cuts: list[int], gaps: list[int]) -> None:
    body, writes, at, now = stream_of(kinds_), [], 0, 0
    for size, gap in zip([*cuts, 10**6], [*gaps, 5], strict=False):
        now += gap
        if at < len(body):
            writes.append((now, body[at : at + size]))
        at += size
    if at < len(body):
        writes.append((now + 1, body[at:]))
    reading = measure(recording(writes))
    m = reading.measurement
    seen = [t for t in (0.0, m.ttft_s, m.ttft_visible_s, m.e2e_s, m.stream_end_s) if t is not None]
    assert all(a <= b for a, b in pairwise(seen)) or m.ttft_visible_s is None
    if m.output_events:
        assert sum(reading.read_tokens) == pytest.approx(m.output_tokens)
    assert (m.reasoning_tokens or 0) <= (m.output_tokens or 0)


@given(places=comments)
@settings(max_examples=60, deadline=None)
def test_comments_change_nothing(places: list[int]) -> None:
    writes = [(at, b": ping\n\n" * places.count(n) + raw) for n, (at, raw) in enumerate(BASE)]
    assert read(writes) == read(BASE)
    assert len(TEXT) == 20
