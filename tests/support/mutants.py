"""Bodies that nobody would send on purpose, and the laws that their readings obey all the same."""

from __future__ import annotations

from array import array
from random import Random

import msgspec

from app.measurement.complaint import TEXT_LIMIT
from app.measurement.evidence import decode, encode
from app.measurement.measure import measure
from app.measurement.model import ErrorClass, Measurement, Outcome
from app.measurement.recording import Marks, Recording, StampSource, Tape
from tests.support.corpus import FILES
from tests.support.recordings import NOW

LONGEST = 20_000
KINDS = ("text/event-stream", "text/event-stream; charset=utf-8", "application/json", "application/x-ndjson", "text/html", None)
STATUSES = (200, 200, 200, 200, 400, 401, 429, 500, 503, 302)
DIRT = (
    b"\n\n", b"\r", b"\r\n\r\n", b"data: ", b"data:", b"[DONE]", b"data: [DONE]\n\n", b"{", b"}", b'"', b"\\u0000", b"\\ud800",
    b"\xff", b"\xf0\x9f", b"\xef\xbb\xbf", b"error: x\n", b"event: error\n", b": ping\n\n", b"null", b"NaN", b"1e999", b"-1",
    b"99999999999999999999999999", b"[[[[[[[[", b'{"error":', b'"usage":{"completion_tokens":', b'"choices":[', b"<think>", b"\x00",
    b'"finish_reason":"stop"', b'"index":-5', b'"done":true', b'"timings":{"prompt_ms":-1}', b"true", b'"content":[{"type":"thinking"',
)  # fmt: skip


def bodies() -> list[bytes]:
    return [path.read_bytes()[:LONGEST] for path in FILES]


def mutant(rng: Random, whole: list[bytes]) -> bytes:
    """A recorded body with one to eight wounds."""
    body = bytearray(rng.choice(whole))
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(body) + 1)
        match rng.randrange(7):
            case 0 if body:
                body[min(at, len(body) - 1)] = rng.randrange(256)
            case 1:
                del body[at:]
            case 2:
                body[at:at] = rng.choice(DIRT)
            case 3:
                other = rng.choice(whole)
                start = rng.randrange(len(other) + 1)
                body[at:at] = other[start : start + 300]
            case 4:
                del body[at : at + rng.randrange(200)]
            case 5:
                body[at:at] = body[at : at + rng.randrange(400)]
            case _:
                body[at:at] = rng.choice(DIRT) * rng.randrange(20)
    return bytes(body)


def recording_of(rng: Random, body: bytes) -> Recording:
    """The body in reads of any sizes, at any times that do not run backwards."""
    stamps, ends, now, end = array("q"), array("q"), rng.randrange(10**9), 0
    while end < len(body) or not ends:
        now += rng.randrange(50_000_000)
        end = min(len(body), end + rng.choice((1, 30, 300, 3000, 10**6)))
        stamps.append(now)
        ends.append(end)
    kind = rng.choice(KINDS)
    return Recording(
        base_url="https://x.example/v1",
        model="m",
        recipe="chat-short",
        dialect="generic",
        marks=Marks(started=0, request_sent=rng.choice((0, None)), closed=now),
        started_at=NOW,
        tape=Tape(body=body, stamps=stamps, ends=ends),
        status=rng.choice(STATUSES),
        headers=() if kind is None else (("content-type", kind), ("retry-after", "2m59.56s")),
        ended=rng.random() < 0.9,
        stamp_source=rng.choice(tuple(StampSource)),
    )


def obey(made: Recording, *, keep: bool = False) -> Measurement:
    """Read it, and hold the reading to the laws that hold for every body."""
    reading = measure(made)
    m = reading.measurement
    assert m.outcome in Outcome
    assert m.error_class in ErrorClass
    assert (m.outcome is Outcome.OK) == (m.error_class is ErrorClass.NONE)
    assert m.error_text is None or len(m.error_text) <= TEXT_LIMIT
    assert m.output_tokens is None or m.output_tokens >= 0
    assert m.reasoning_tokens is None or m.output_tokens is None or m.reasoning_tokens <= m.output_tokens
    assert m.decode_tps is None or m.decode_tps > 0
    if m.ttft_s is not None:
        assert m.e2e_s is not None
        assert 0 <= m.ttft_s <= m.e2e_s
        assert m.ttft_visible_s is None or m.ttft_visible_s >= m.ttft_s
    assert not (m.reliable.ttft or m.reliable.tps) or m.outcome is Outcome.OK
    assert list(reading.read_stamps_s) == sorted(reading.read_stamps_s)
    stored = msgspec.json.encode(m)
    assert "\0" not in "".join(each for each in (m.error_text, m.finish_reason, m.served_model, m.served_by) if each)
    assert len(stored) < 100_000
    if keep:
        assert decode(encode(made)).tape.ends == made.tape.ends
    return m
