"""No byte of a key stays in a recording, and what arrived when stays true."""

import json
from array import array
from datetime import UTC, datetime

import pytest

from app.measurement.recording import Failure, FailureKind, Marks, Recording, Tape
from app.probe.veil import SHORTEST, veil, without

KEY = 'own/k"ey+0815'


def recording(body: bytes, **more: object) -> Recording:
    made = Recording(
        base_url="http://h/v1", model="m", recipe="r", dialect="generic", marks=Marks(started=0), started_at=datetime.now(UTC)
    )
    made.tape = Tape(body=body, stamps=array("q", [5]), ends=array("q", [len(body)]))
    for name, value in more.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    "spelling", [KEY, "own%2Fk%22ey%2B0815", json.dumps(KEY)[1:-1], json.dumps(KEY)[1:-1].replace("/", "\\/")]
)
def test_every_spelling_of_the_key_becomes_stars_of_its_length(spelling: str) -> None:
    one = recording(f"a {spelling} b {spelling}".encode())
    length = len(one.tape.body)
    veil(one, KEY)
    stars = "*" * len(spelling)
    assert one.tape.body.decode() == f"a {stars} b {stars}"
    assert (len(one.tape.body), list(one.tape.ends)) == (length, [length])


def test_headers_and_the_failure_lose_it_too() -> None:
    one = recording(b"", headers=(("x-echo", f"Bearer {KEY}"),), failure=Failure(kind=FailureKind.PROTOCOL, text=f"bad {KEY}"))
    veil(one, KEY)
    assert one.headers == (("x-echo", "Bearer [redacted]"),)
    assert one.failure is not None
    assert one.failure.text == "bad [redacted]"


def test_a_placeholder_is_no_secret_and_tears_no_hole_into_a_stream() -> None:
    body = b'data: {"model": "ollama/x", "finish_reason": null}\n\n'
    for placeholder in ("x", "null", "ollama", "o" * (SHORTEST - 1)):
        one = recording(body)
        veil(one, placeholder)
        assert one.tape.body == body
        assert without("null", placeholder) == "null"
