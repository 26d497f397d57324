"""What reading a recorded stream costs: CPU per chunk, beside `json.loads` of the same chunks alone.

    python benchmarks/parse_cost.py [--rounds 7]

Each body is read whole: framing, JSON, dialects, usage, classification and figures. CPU time of this thread, the best of
some rounds, so that a busy machine shows less. `json.loads` gets the payloads already cut out, which is the least that any
client does; a client that also validates them into models does far more.
"""

from __future__ import annotations

import argparse
import json
import time
from array import array
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from app.measurement.framing import frame
from app.measurement.measure import measure
from app.measurement.recording import Recording, StampSource, Tape
from app.measurement.replay import Recorded, recording_of

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
FILES = (
    "groq-04.sse",
    "cerebras-01.sse",
    "deepseek-03.sse",
    "xai-06.sse",
    "openrouter-08.sse",
    "mistral-01.sse",
    "vllm-evroc-01.sse",
    "llamacpp-01.sse",
    "gpustack-01.sse",
)


def best_s(work: Callable[[], object], rounds: int) -> float:
    """Least CPU of one call, in seconds; many calls a round where one is too short to time."""
    began = time.thread_time()
    work()
    calls = max(1, int(0.05 / max(time.thread_time() - began, 1e-6)))
    found = []
    for _ in range(rounds):
        began = time.thread_time()
        for _ in range(calls):
            work()
        found.append((time.thread_time() - began) / calls)
    return min(found)


def timed(name: str) -> Recording:
    """The file as a probe would have taped it: a read for every event."""
    body = (CORPUS / name).read_bytes()
    made = recording_of(Recorded(body=body, content_type="text/event-stream"), now=datetime(2026, 1, 1, tzinfo=UTC))
    ends = array("q", [event.end for event in frame(made.tape.body).events])
    made.tape = Tape(body=made.tape.body, stamps=array("q", [n * 10_000_000 for n in range(len(ends))]), ends=ends)
    made.stamp_source, made.marks.request_sent = StampSource.KERNEL, 0
    return made


def row(name: str, *, chunks: int, size: int, ours_s: float, json_s: float) -> str:
    each = f"{ours_s / chunks * 1e6:17.1f} {json_s / chunks * 1e6:11.1f} {ours_s / json_s:6.2f}"
    return f"{name:22} {chunks:7} {size:8} {each}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"{'body':22} {'chunks':>7} {'bytes':>8} {'reading us/chunk':>17} {'json.loads':>11} {'ratio':>6}")
    chunks = size = 0
    ours_s = json_s = 0.0
    for name in FILES:
        made = timed(name)
        payloads = [event.data for event in frame(made.tape.body).events if event.data.startswith(b"{")]
        ours = best_s(partial(measure, made), rounds)
        plain = best_s(partial(load_all, payloads), rounds)
        print(row(name, chunks=len(payloads), size=len(made.tape.body), ours_s=ours, json_s=plain))
        chunks, size = chunks + len(payloads), size + len(made.tape.body)
        ours_s, json_s = ours_s + ours, json_s + plain
    print(row("all", chunks=chunks, size=size, ours_s=ours_s, json_s=json_s))


def load_all(payloads: list[bytes]) -> list[object]:
    return [json.loads(each) for each in payloads]


if __name__ == "__main__":
    main()
