"""Whatever arrives, there is an outcome: no crash, no hang, bounded memory, and no figure that cannot be.

`make test-slow` reads 200,000 mutated bodies and 20,000 made-up streams; the ordinary suite a sample of both.
"""

import json
import resource
import time
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.measurement.model import Outcome
from tests.support.mutants import bodies, mutant, obey, recording_of

SLOWEST_S = 5.0
"""CPU of one body of 30 KB, which takes some milliseconds."""
GROWTH_KB = 300_000


def fuzz(count: int, *, seed: int) -> Counter[Outcome]:
    rng, whole = Random(seed), bodies()
    outcomes: Counter[Outcome] = Counter()
    for number in range(count):
        made = recording_of(rng, mutant(rng, whole))
        began = time.thread_time()
        outcomes[obey(made, keep=number % 50 == 0).outcome] += 1
        assert time.thread_time() - began < SLOWEST_S
    return outcomes


def test_a_sample_of_mutated_bodies_all_have_an_outcome() -> None:
    outcomes = fuzz(1200, seed=7)
    assert sum(outcomes.values()) == 1200
    assert len(outcomes) >= 8


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(10))
def test_twenty_thousand_mutated_bodies_all_have_an_outcome(part: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sum(fuzz(20_000, seed=1000 + part).values()) == 20_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_KB


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["stop", "length", "error", "content_filter", "<think>", "</think>", "a", " ", "\u2028", "\x00"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
delta = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("content", "reasoning", "reasoning_content", "reasoning_details", "tool_calls", "refusal", "role"), values
    ),
)
choice = st.one_of(
    values,
    st.fixed_dictionaries(
        {"delta": st.one_of(delta, values)}, optional={"index": values, "finish_reason": values, "text": values}
    ),
)
counts = st.dictionaries(
    st.sampled_from(
        [
            "completion_tokens",
            "prompt_tokens",
            "total_tokens",
            "reasoning_tokens",
            "completion_tokens_details",
            "queue_time",
            "prompt_tokens_details",
        ]
    ),
    values,
    max_size=5,
)
chunks = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.one_of(st.lists(choice, max_size=3), values),
        "usage": st.one_of(counts, values),
        "error": values,
        "x_groq": values,
        "timings": values,
        "time_info": values,
        "message": st.one_of(delta, values),
        "done": values,
        "done_reason": values,
        "model": values,
        "system_fingerprint": values,
        "object": values,
    },
)
line_ends = st.sampled_from(["\n", "\r\n", "\r"])
events = st.one_of(
    chunks.map(json.dumps).map("data: {}".format),
    chunks.map(json.dumps).map("event: error@data:{}".format),
    st.sampled_from(["data: [DONE]", ": ping", "retry: 1", "data:", "error: {}", "id", "data: {@data: }"]),
    st.text(max_size=20),
)


@st.composite
def streams(draw: Any) -> bytes:
    """Events as a server might write them that knows the words and not their meaning."""
    end = draw(line_ends)
    written = [
        each.replace("@", end) + end * draw(st.sampled_from([2, 2, 2, 1, 3])) for each in draw(st.lists(events, max_size=12))
    ]
    return "".join(written).encode("utf-8", "surrogatepass")


@st.composite
def lines(draw: Any) -> bytes:
    return "\n".join(json.dumps(each) for each in draw(st.lists(chunks, max_size=8))).encode("utf-8", "surrogatepass")


def check(body: bytes, seed: int) -> None:
    made = recording_of(Random(seed), body)
    obey(made, keep=seed % 20 == 0)


@given(body=st.one_of(streams(), lines()), seed=st.integers(0, 1000))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_sample_of_made_up_streams_all_have_an_outcome(body: bytes, seed: int) -> None:
    check(body, seed)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@given(body=st.one_of(streams(), lines()), seed=st.integers(0, 1000))
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_twenty_thousand_made_up_streams_all_have_an_outcome(body: bytes, seed: int) -> None:
    check(body, seed)


@pytest.mark.parametrize("kind", ["text/event-stream", "application/x-ndjson", None])
def test_bombs_take_neither_time_nor_memory(kind: str | None) -> None:
    bombs = [
        b"[" * 120_000,
        b"data: " + b"[" * 120_000 + b"\n\n",
        b"data: " + b'{"a":' * 30_000 + b"\n\n",
        b"data: {}{}" * 50_000 + b"\n\n",
        b"data: " + b"{}" * 50_000 + b"\n\n",
        b"\n" * 250_000,
        b":\n" * 120_000,
        b"data\n" * 80_000 + b"\n",
        b"<script>" * 15_000,
        b"<" * 80_000,
        b"a1" * 80_000,
        b"eyJ" * 50_000,
        b'data: {"choices":[' + b"{}," * 30_000 + b"{}]}\n\n",
        b'data: {"usage":{"completion_tokens":' + b"9" * 10_000 + b"}}\n\n",
    ]
    for status in (200, 500):
        for body in bombs:
            made = recording_of(Random(1), b"")
            made.tape.body = body
            made.tape.ends[-1] = len(body)
            made.status, made.headers = status, () if kind is None else (("content-type", kind),)
            began = time.thread_time()
            obey(made)
            assert time.thread_time() - began < SLOWEST_S
