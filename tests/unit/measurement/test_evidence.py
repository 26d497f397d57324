"""A kept recording is bounded, holds no secret, and reads as the run did."""

import gzip
from array import array
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import UsageError
from app.measurement.evidence import FORMAT, decode, encode, is_recording, mask
from app.measurement.measure import measure
from app.measurement.recording import Failure, FailureKind, HostHealth, Marks, Recording, StampSource, Tape
from app.measurement.replay import recording_of, replay_recording
from app.targets.model import Connection
from tests.support.corpus import FILES, NOW, recorded
from tests.support.recordings import MS, recording
from tests.support.scenarios import BASE, SCENARIOS, Scenario


def timed(path: Path) -> Recording:
    """The file as if it had come in reads of some hundred bytes, every few milliseconds."""
    made = recording_of(recorded(path), now=NOW)
    rng = Random(path.name)
    body, stamps, ends = made.tape.body, array("q"), array("q")
    while not ends or ends[-1] < len(body):
        stamps.append((stamps[-1] if stamps else 200 * MS) + rng.randrange(30 * MS))
        ends.append(min(len(body), (ends[-1] if ends else 0) + rng.randrange(1, 900)))
    made.tape = Tape(body=body, stamps=stamps, ends=ends)
    made.stamp_source = StampSource.KERNEL
    made.marks = Marks(started=0, request_sent=5 * MS, headers=180 * MS, closed=stamps[-1])
    return made


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_kept_recording_of_a_recorded_body_gives_the_same_figures(path: Path) -> None:
    made = timed(path)
    kept = decode(encode(made))
    assert measure(kept) == measure(made)
    assert replay_recording(kept, file="x") == replay_recording(made, file="x")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_a_kept_recording_of_a_scenario_is_the_recording(scenario: Scenario) -> None:
    made = recording(scenario.writes, status=scenario.status)
    assert decode(encode(made)) == made


def test_everything_that_a_recording_holds_comes_back() -> None:
    made = recording(BASE, headers=[("x-request-id", "r1"), ("x-request-id", "r2")], notes=("without_stream_options",))
    made = replace(
        made,
        failure=Failure(kind=FailureKind.STALL, text="no output for 30 s"),
        connection=Connection.WARM,
        host=HostHealth(loop_lag_p99_s=0.001, loop_lag_max_s=0.002, in_flight=7),
        expected_output_tokens=128,
        started_at=datetime(2026, 5, 6, 7, 8, 9, 123456, tzinfo=UTC),
    )
    assert decode(encode(made)) == made
    assert encode(made) == encode(made)


def test_the_body_can_be_looked_at_without_us() -> None:
    raw = gzip.decompress(encode(recording(BASE)))
    assert raw.partition(b"\n")[2] == b"".join(raw for _, raw in BASE)


def test_a_secret_becomes_stars_of_its_length_and_nothing_else_moves() -> None:
    secret = "sk-" + "abcdefgh12345678"
    body = f'{{"error": {{"message": "no such key {secret}", "code": 401}}}}'.encode()
    made = recording([(5, body)], status=401, headers=[("x-echo", f"Bearer {secret}")])
    kept = decode(encode(made))
    assert secret.encode() not in gzip.decompress(encode(made))
    assert len(kept.tape.body) == len(body)
    assert measure(kept).measurement.outcome == "auth"
    assert kept.header("x-echo") == "[redacted]"
    for answer in (True, False):
        body = b"data: Bearer\n\nabcdefgh12 {}\n\n" + secret.encode()
        assert mask(body, answer=answer).count(b"\n") == 4
        assert mask(body, answer=answer).endswith(b"\n\n" + b"*" * len(secret))


def test_long_words_of_an_answer_stay_and_those_of_an_error_go() -> None:
    word = b"fp_a1b2c3d4e5_prod0820_fp8_kvcache_20250401_x"
    assert mask(word, answer=True) == word
    assert mask(word, answer=False) == b"*" * len(word)


def test_a_recording_is_bounded_and_says_what_was_cut() -> None:
    noise = Random(1).randbytes(300_000).hex().encode()
    long = recording([(5, b": " + noise[:200_000] + b"\n\n"), *BASE])
    small = encode(long, body_limit=1000)
    assert len(decode(small).tape.body) == 1000
    assert decode(small).request_notes == ("recording_cut",)
    assert "recording_cut" in measure(decode(small)).measurement.notes
    tight = encode(recording([(5, Random(1).randbytes(100_000))]), size_limit=20_000)
    assert len(tight) <= 20_000
    assert decode(encode(decode(tight), body_limit=10)).request_notes == ("recording_cut",)
    assert len(encode(recording([(5, b"x")]), size_limit=1)) > 1  # facts are kept even so


def packed(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)


def changed(**facts: object) -> bytes:
    line, _, body = gzip.decompress(encode(recording(BASE))).partition(b"\n")
    return packed(msgspec.json.encode({**msgspec.json.decode(line), **facts}) + b"\n" + body)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x1f\x8bnonsense",
        packed(b""),
        packed(b"{}\n"),
        packed(b"not json\nbody"),
        encode(recording(BASE))[:-20],
        changed(format="bandwatch recording 2"),
        changed(stamps=[1]),
        changed(ends=[10**9] * len(BASE)),
        changed(ends=[-1] * len(BASE)),
        changed(ends=list(range(len(BASE), 0, -1))),
        changed(status="x"),
    ],
    ids=range(12),
)
def test_what_is_no_recording_is_refused_in_words(content: bytes) -> None:
    with pytest.raises(UsageError, match="not a kept recording"):
        decode(content)


def test_a_recording_is_told_from_a_body() -> None:
    assert is_recording(encode(recording(BASE)))
    assert not is_recording(b"data: {}\n\n")
    assert FORMAT in gzip.decompress(encode(recording([]))).decode()


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_no_bytes_crash_the_reader(content: bytes) -> None:
    for each in (content, b"\x1f\x8b" + content, packed(content), packed(b"{}\n" + content)):
        with pytest.raises(UsageError):
            decode(each)
