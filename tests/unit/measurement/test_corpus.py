"""Every recorded body reads as its expectation says, however its bytes are cut or its lines end."""

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.measurement.replay import Recorded, replay
from app.measurement.stream import read_stream

CORPUS = Path(__file__).parents[2] / "corpus"
FILES = sorted(p for p in CORPUS.iterdir() if (CORPUS / f"{p.name}.meta.json").exists())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = ("output", "content", "visible", "reasoning", "tool", "refusal")


def meta_of(path: Path) -> dict[str, Any]:
    return dict(json.loads((CORPUS / f"{path.name}.meta.json").read_text()))


def read(path: Path) -> dict[str, Any]:
    meta = meta_of(path)
    return replay(
        Recorded(
            body=path.read_bytes(), status=meta["http_status"], content_type=meta["content_type"], headers=meta["headers"]
        ),
        file=path.name,
        now=NOW,
    )


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_recorded_body_is_classed_as_expected(path: Path) -> None:
    expect = meta_of(path)["expect"]
    assert read(path)["error_class"] in [expect["class"], *expect["class_also"]]


@pytest.mark.parametrize("path", [p for p in FILES if "n_events" in meta_of(p)["expect"]], ids=lambda p: p.name)
def test_a_recorded_stream_reads_as_expected(path: Path) -> None:
    expect, found = meta_of(path)["expect"], read(path)
    assert found["events"] == expect["n_events"]
    assert found["done_seen"] == expect["done_seen"]
    for name in FIRST:
        assert (name, found[f"first_{name}_index"]) == (name, expect[f"first_{name}_event"])
    for name in ("content_chars", "content_sha256", "reasoning_chars", "reasoning_sha256"):
        assert (name, found[name]) == (name, expect[name])
    finishes = [reason for _, choice, reason in expect["finish"] if choice == 0]
    assert found["finish_reason"] == (finishes[-1] if finishes else None)
    assert found["error_seen"] == bool(expect["errors"])
    usage = expect["usage_last"] or {}
    assert found["prompt_tokens"] == usage.get("prompt_tokens")
    assert found["completion_tokens"] == usage.get("completion_tokens")
    if expect["usage"]:
        assert found["reasoning_tokens"] == expect["usage"][-1][5]
        assert found["cached_tokens"] == expect["usage"][-1][6]


STREAMS = [p for p in FILES if p.suffix == ".sse"]


@pytest.mark.parametrize("end", [b"\r\n", b"\r"], ids=["crlf", "cr"])
@pytest.mark.parametrize("path", STREAMS, ids=lambda p: p.name)
def test_the_line_end_changes_nothing_but_offsets(path: Path, end: bytes) -> None:
    body = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    one, other = read_stream(body), read_stream(body.replace(b"\n", end))
    assert (one.first, one.content, one.reasoning, one.usages, one.events) == (
        other.first,
        other.content,
        other.reasoning,
        other.usages,
        other.events,
    )


def test_mutated_bodies_always_have_an_outcome() -> None:
    rng = random.Random(7)
    bodies = [p.read_bytes()[:20_000] for p in FILES]
    for _ in range(600):
        body = bytearray(rng.choice(bodies))
        for _ in range(rng.randint(1, 8)):
            match rng.randrange(4):
                case 0 if body:
                    body[rng.randrange(len(body))] = rng.randrange(256)
                case 1:
                    del body[rng.randrange(len(body) + 1) :]
                case 2:
                    at = rng.randrange(len(body) + 1)
                    body[at:at] = rng.choice([b"\n\n", b"data: ", b"\r", b"[DONE]", b"{", b'"', b"\xff", b"error: x\n"])
                case _:
                    at = rng.randrange(len(body) + 1)
                    body[at:at] = rng.choice(bodies)[:200]
        assert replay(Recorded(body=bytes(body), content_type="text/event-stream"), file="x", now=NOW)["outcome"]
