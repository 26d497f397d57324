"""Where a body is cut into reads, and what ends its lines, changes nothing but which read completes an event.

Each cut goes the whole way that bytes of a socket go: a head, chunked framing, two reads with stamps, and back.
"""

from array import array
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from app.measurement.figures import stamp_at
from app.measurement.measure import measure_stream
from app.measurement.recording import Recording, StampSource
from app.measurement.recording import Tape as Decoded
from app.measurement.replay import recording_of
from app.measurement.stream import Stream, read_stream
from app.probe.exchange import tape_of
from app.probe.tape import Tape
from tests.support.corpus import FILES, NOW, STREAMS, recorded, replayed

LARGE, ENDS, MORE = 65_536, 16_384, 5_000
"""Of bodies beyond `LARGE` bytes: both ends, and so many positions between them."""
CHUNK = 1_460
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
HEADERS = (("transfer-encoding", "chunked"),)
READ_NOTES = {"coalesced_reads", "buffered_by_proxy", "bundled_first_read", "coalesced_first_read"}
"""Notes that tell of reads, not of what was said."""


def positions(size: int, *, rng: Random) -> Iterator[int]:
    if size <= LARGE:
        yield from range(size + 1)
        return
    yield from range(ENDS)
    yield from sorted(rng.sample(range(ENDS, size - ENDS), MORE))
    yield from range(size - ENDS, size + 1)


def wire(body: bytes) -> bytes:
    """The body in chunks of one packet each, as a server writes them."""
    pieces = [body[at : at + CHUNK] for at in range(0, len(body), CHUNK)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def cut(raw: bytes, at: int, *, offset: int) -> Tape:
    """Two reads, of which the second came a second later."""
    tape = Tape()
    tape.take(1_000_000_000, raw[: offset + at], kernel=True)
    tape.take(2_000_000_000, raw[offset + at :], kernel=True)
    return tape


def law(recording: Recording, stream: Stream, raw: bytes, at: int) -> None:
    """The body is the same, so is the reading, and each event has the stamp of the read that completed it."""
    body = recording.tape.body
    recording.tape = tape_of(cut(raw, at, offset=len(HEAD)), offset=len(HEAD), headers=HEADERS)
    assert recording.tape.body == body
    assert recording.tape.ends[-1] == len(body)
    reading = measure_stream(recording, stream)
    m = reading.measurement
    assert (m.output_tokens, m.output_events) == (recording.expected_output_tokens, len(stream.outputs))
    if stream.outputs:
        there = recording.tape.ends[0] if len(recording.tape.ends) == 2 else 0
        assert m.ttft_s == (1.0 if stream.outputs[0].end <= there else 2.0)
        assert m.e2e_s == (1.0 if stream.outputs[-1].end <= there else 2.0)
        assert sum(reading.read_tokens) == pytest.approx(m.output_tokens)


def prepared(path: Path, body: bytes | None = None) -> tuple[Recording, Stream, bytes]:
    recording = recording_of(recorded(path, body=body), now=NOW)
    stream = read_stream(recording.tape.body, content_type=recording.header("content-type"))
    recording.expected_output_tokens = measure_stream(recording, stream).measurement.output_tokens
    recording.stamp_source, recording.marks.request_sent = StampSource.KERNEL, 0
    return recording, stream, HEAD + wire(recording.tape.body)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_body_cut_somewhere_reads_the_same(path: Path) -> None:
    rng = Random(path.name)
    recording, stream, raw = prepared(path)
    for at in (0, len(raw) - len(HEAD), *(rng.randrange(len(raw) - len(HEAD)) for _ in range(25))):
        law(recording, stream, raw, at)
    size = len(recording.tape.body)
    whole = replayed(path)
    for at in (rng.randrange(size + 1) for _ in range(2 if size < LARGE else 1)):
        assert told(replayed(path, read_sizes=(at,))) == told(whole)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_body_cut_anywhere_reads_the_same(path: Path) -> None:
    recording, stream, raw = prepared(path)
    for at in positions(len(raw) - len(HEAD), rng=Random(path.name)):
        law(recording, stream, raw, at)


def told(found: dict[str, object]) -> dict[str, object]:
    """A reading without what it says of reads."""
    notes, figures = found["notes"], found["reliable"]
    assert isinstance(notes, list)
    assert isinstance(figures, dict)
    return {**found, "notes": sorted(set(notes) - READ_NOTES), "reliable": None}


def prefix_law(body: bytes, stream: Stream, at: int, kind: str | None) -> None:
    """What has arrived says what the whole will say of it: outputs seen so far are the first ones of all."""
    so_far = read_stream(body[:at], content_type=kind)
    count = len(so_far.outputs)
    if so_far.kind == stream.kind:
        assert [each.index for each in so_far.outputs] == [each.index for each in stream.outputs[:count]]
        assert "".join(stream.content).startswith("".join(so_far.content))
    assert not (so_far.done_seen and not stream.done_seen)


@pytest.mark.parametrize("path", STREAMS, ids=lambda p: p.name)
def test_what_has_arrived_is_the_beginning_of_what_will_have(path: Path) -> None:
    rng = Random(path.name)
    body = path.read_bytes()
    stream = read_stream(body)
    for at in (rng.randrange(len(body) + 1) for _ in range(12 if len(body) < LARGE else 2)):
        prefix_law(body, stream, at, None)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_at_every_moment_what_has_arrived_is_the_beginning(path: Path) -> None:
    recording, stream, _ = prepared(path)
    body, kind = recording.tape.body, recording.header("content-type")
    every = max(1, len(body) * len(body) // 4_000_000)  # the cost of all prefixes grows with the square
    for at in range(0, len(body) + 1, every):
        prefix_law(body, stream, at, kind)


def reframed(body: bytes, end: bytes) -> bytes:
    return body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", end)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("path", STREAMS, ids=lambda p: p.name)
def test_what_ends_a_line_changes_nothing(path: Path, end: bytes) -> None:
    body = reframed(path.read_bytes(), end)
    assert replayed(path, body=body) == replayed(path)
    rng = Random(path.name)
    recording, stream, raw = prepared(path, body)
    for at in (rng.randrange(len(raw) - len(HEAD)) for _ in range(5)):
        law(recording, stream, raw, at)


def test_an_event_is_complete_with_the_cr_of_its_blank_line() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\r\n\r\n'
    (output,) = read_stream(body).outputs
    tape = Decoded(body=body, stamps=array("q", [1, 2]), ends=array("q", [len(body) - 1, len(body)]))
    assert stamp_at(tape, output.end) == 1
