"""The grammar of streams: entries 38 to 52."""

import json

from app.measurement.recording import FailureKind
from app.measurement.replay import replay_recording
from tests.support.recordings import Writes, read, recording
from tests.support.scenarios import BASE, CUT, END, PLAIN, ROLE, chunk, data, fin, usage


def text_of(writes: Writes) -> tuple[int, int]:
    found = replay_recording(recording(writes), file="x")
    return found["content_chars"], found["output_tokens"]


def test_38_line_separators_of_unicode_are_text() -> None:
    for odd in ("\u2028", "\u2029", "\u0085", "\u000b", "\u000c", "\u001c"):
        strange = (200, data(json.dumps(chunk(content=f" a{odd}b"), ensure_ascii=ord(odd) < 32)))
        assert text_of([ROLE, strange, *PLAIN[1:], *END]) == (23, 20)


def test_39_a_body_is_utf_8_whatever_the_header_does_not_say() -> None:
    accented = [ROLE, (200, data(chunk(content="é"))), *PLAIN[1:], *END]
    for kind in ("text/event-stream", "text/event-stream; charset=iso-8859-1", None):
        found = replay_recording(recording(accented, content_type=kind), file="x")
        assert (found["content_chars"], found["outcome"]) == (20, "ok")


def test_40_a_character_in_two_reads_arrives_with_the_second() -> None:
    raw = data(chunk(content="✅"))
    cut = raw.index("✅".encode()) + 1
    m = read([ROLE, (200, raw[:cut]), (208, raw[cut:]), *PLAIN[1:], *END])
    assert (m.outcome, m.ttft_s, m.output_tokens) == ("ok", 0.208, 20)
    assert text_of([ROLE, (200, raw[:cut]), (208, raw[cut:]), *PLAIN[1:], *END])[0] == 20


def test_41_comments_in_reads_of_their_own_take_nothing_away() -> None:
    blanks = [(at, raw.replace(b'"content": "', b'"content": " ')) for at, raw in PLAIN]
    pings = [(50, b": ping\n\n"), (100, b": ping\n\n"), *blanks, *END]
    assert (read(pings).ttft_s, text_of(pings)) == (0.2, (40, 20))


def test_42_the_space_after_the_colon_may_be_missing_and_other_fields_there() -> None:
    bare = [(at, raw.replace(b"data: ", b"data:")) for at, raw in BASE]
    dressed = [(at, raw.replace(b"data: ", b"event: message\nid: 7\nretry: 100\ndata:")) for at, raw in BASE]
    assert [(read(each).output_tokens, read(each).tpot_s) for each in (bare, dressed)] == [(20, 0.02)] * 2


def test_43_lines_may_end_in_crlf() -> None:
    m = read([(at, raw.replace(b"\n", b"\r\n")) for at, raw in BASE])
    assert (m.outcome, m.output_tokens, m.token_source, m.tpot_s) == ("ok", 20, "usage", 0.02)


def test_44_comments_between_tokens_are_ignored() -> None:
    noisy = [each for at, raw in BASE for each in ((at - 1, b": keep-alive\n\n"), (at, b":\n" + raw))]
    m = read(noisy)
    assert (m.outcome, m.ttft_s, m.tpot_s, m.output_tokens) == ("ok", 0.2, 0.02, 20)


def test_45_a_comment_that_a_gateway_wrapped_as_data_is_ignored() -> None:
    m = read([(20, b"data: : OPENROUTER PROCESSING\n\n"), *BASE])
    assert (m.outcome, m.ttft_s, m.output_tokens) == ("ok", 0.2, 20)


def test_46_an_event_without_data_is_none() -> None:
    m = read([(5, b"retry: 3000\n\n"), (6, b"id: 1\n\n"), (7, b"data:\n\n"), (8, b"event: ping\ndata\n\n"), *BASE])
    assert (m.outcome, m.ttft_s, m.output_tokens) == ("ok", 0.2, 20)


def test_47_an_event_named_error_is_one() -> None:
    for body in ({"error": {"message": "x", "status_code": 400}}, {"message": "x", "code": 400}, {"detail": "x"}):
        m = read([*CUT, (300, b"event: error\n" + data(body))])
        assert m.outcome in {"bad_request", "provider_error"}
        assert (m.error_text, m.output_tokens, m.reliable.ttft) == ("x", 5, False)
    assert read([*CUT, (300, b"event: error\ndata: it broke\n\n")]).error_text == "it broke"


def test_48_a_field_named_error_is_an_error() -> None:
    m = read([*CUT, (300, b'error: {"code": 503, "message": "no slot"}\n\n')])
    assert (m.outcome, m.error_class, m.error_text) == ("provider_error", "overloaded", "no slot")
    plain = read([*CUT, (300, b"error: no slot\n\n")])
    assert (plain.outcome, plain.error_text) == ("provider_error", "no slot")


def test_49_done_without_its_blank_line_is_done() -> None:
    for tail in (b"data: [DONE]\n", b"data: [DONE]", b"data:[DONE]"):
        found = replay_recording(recording([*BASE[:-1], (680, data(usage(20)) + tail)]), file="x")
        assert (found["outcome"], found["done_seen"], "no_done" in found["notes"]) == ("ok", True, False)


def test_50_a_long_line_is_read_and_a_boundless_one_is_oversize() -> None:
    long = read([ROLE, (200, data(chunk(content="x" * 300_000))), *PLAIN[1:], *END])
    assert (long.outcome, long.output_tokens) == ("ok", 20)
    boundless = read([ROLE, (200, data(chunk(content="x" * 1_100_000))), *PLAIN[1:], *END])
    assert (boundless.outcome, boundless.error_class) == ("malformed", "oversize")


def test_51_two_objects_in_one_event_are_both_read_and_an_error_inside_a_cut_event_is_found() -> None:
    glued = data(json.dumps(chunk(content="a")) + json.dumps(chunk(content="b")))
    m = read([ROLE, (200, glued), *PLAIN[2:], *END])
    assert (m.outcome, m.output_tokens) == ("ok", 20)
    assert text_of([ROLE, (200, glued), *PLAIN[2:], *END])[0] == 20
    cut = b'data: {"choices":[{"index":0,"delta":{"conte\n' + data({"error": {"message": "upstream died", "code": 502}})
    broken = read([*CUT, (300, cut)])
    assert (broken.outcome, broken.error_class, broken.error_text) == ("provider_error", "bad_gateway", "upstream died")


def test_52_a_reset_in_the_middle_is_a_failure_of_the_wire() -> None:
    m = read(CUT, failure=FailureKind.RESET)
    assert (m.outcome, m.error_class, m.output_tokens) == ("provider_error", "reset", 5)
    whole = read([*CUT, (300, data(fin()) + data("[DONE]"))], failure=FailureKind.RESET)
    assert whole.outcome == "ok"
