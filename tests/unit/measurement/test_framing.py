"""Framing reads every recorded stream as its expectation says, whatever ends its lines."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.measurement.framing import frame

CORPUS = Path(__file__).parents[2] / "corpus"
STREAMS = sorted(p for p in CORPUS.glob("*.sse") if "sse" in json.loads((CORPUS / f"{p.name}.meta.json").read_text())["expect"])


@pytest.mark.parametrize("path", STREAMS, ids=lambda p: p.name)
def test_a_recorded_stream_has_its_events_comments_and_end(path: Path) -> None:
    expect = json.loads((CORPUS / f"{path.name}.meta.json").read_text())["expect"]
    framed = frame(path.read_bytes())
    done = any(e.data == b"[DONE]" for e in framed.events) or framed.tail == b"[DONE]"
    assert len(framed.events) == expect["n_events"]
    assert framed.comments == expect["sse"]["comments"]
    assert done == expect["done_seen"]


def test_line_ends_optional_space_bom_and_several_data_lines_read_the_same() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        body = b"\xef\xbb\xbf" + end.join([b": hi", b"event: x", b"data:{", b"data: }", b"", b"data: [DONE]"])
        framed = frame(body)
        assert [(e.data, e.name) for e in framed.events] == [(b"{\n}", "x")]
        assert (framed.tail, framed.comments) == (b"[DONE]", 1)


def test_a_line_separator_inside_text_is_text_and_an_error_field_is_kept() -> None:
    framed = frame("data: a\u2028b\n\nerror: {}\n\n".encode())
    assert framed.events[0].data.decode() == "a\u2028b"
    assert framed.errors == (b"{}",)


PIECES = [
    b"data: a",
    b"data:b",
    b"data",
    b"event: x",
    b": note",
    b"error: e",
    b"id: 1",
    b"\n",
    b"\n\n",
    b"\n\n\n",
    b"",
    b"data: [DONE]",
]


@given(lead=st.sampled_from([b"", b"\xef\xbb\xbf"]), pieces=st.lists(st.sampled_from(PIECES), max_size=24))
@example(lead=b"\xef\xbb\xbf", pieces=[b"\n\n", b"data: a"])
@example(lead=b"", pieces=[b"data: a", b"\n\n\n", b"data:b", b"\n"])
def test_the_quick_way_through_a_body_reads_it_as_going_line_by_line_does(lead: bytes, pieces: list[bytes]) -> None:
    body = lead + b"".join(pieces)
    quick, slow = frame(body), frame(body.replace(b"\n", b"\r"))  # a CR makes it go line by line, at the same offsets
    assert quick == slow
