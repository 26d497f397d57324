"""The ways to read a stream, each timed against the instants inside its chunks.

    python -m benchmarks.truth.clients WAY URL STREAMS ROUNDS [blocked] [AUTHORITY]

Ways: `kernel` and `loop` (our prober, whole: call, stamps, parsing, figures), `lines` (httpx2 `aiter_lines` + json as lines
come), `openai` (the SDK's own loop). Prints one line of JSON. One round before the measured ones warms everything up.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from random import Random

import httpx2
import uvloop

from app.clock import SystemClock
from app.measurement.figures import stamp_at
from app.measurement.recording import Recording
from app.probe.client import Clients
from app.probe.prober import Prober
from app.targets.model import Provider, Recipe, Target

TRUTH = re.compile(rb'"arrived": (\d+), "wrote": (\d+)')
OFFSET = 10**18
"""Added to written instants, so that all have 19 digits."""
BODY = {"model": "truth", "stream": True, "messages": [{"role": "user", "content": "count"}]}


@dataclass
class Found:
    """What a way said, beside the truth. Milliseconds; TPS errors are shares."""

    lateness: list[float] = field(default_factory=list)
    ttft: list[float] = field(default_factory=list)
    tps: list[float] = field(default_factory=list)
    chunks: int = 0
    fused: int = 0
    """Chunks that shared their read with a later one."""
    failed: int = 0
    cpu_us: float = 0.0

    def stream(self, seen: list[tuple[int, int, int]], ttft_s: float, tps: float) -> None:
        """(stamp, written, arrived) of each chunk of a stream, and its figures as the way has them."""
        self.chunks += len(seen)
        self.lateness += [(stamp - wrote) / 1e6 for stamp, wrote, _ in seen]
        first, last = seen[0], seen[-1]
        self.ttft.append(ttft_s * 1e3 - (first[1] - first[2]) / 1e6)
        true = (len(seen) - 1) / ((last[1] - first[1]) / 1e9)
        self.tps.append(abs(tps / true - 1))


Round = Callable[[int], Awaitable[list[object]]]


def ours(url: str, tls: ssl.SSLContext | None, *, kernel: bool) -> tuple[Round, Callable[[Found, object], None]]:
    prober = Prober(clients=Clients(tls=tls, kernel=kernel), resolve=lambda _: "", clock=SystemClock(), rng=Random(1))
    provider = Provider(name="truth", base_url=url)
    target = Target(name="truth", provider=provider, model="truth", every_s=60, recipe=Recipe(name="chat-short"))

    async def run(streams: int) -> list[object]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(prober.probe(target)) for _ in range(streams)]
        return [task.result() for task in tasks]

    def note(found: Found, result: object) -> None:
        recording, reading = result  # type: ignore[misc]  # what `run` made
        m = reading.measurement
        if m.ttft_s is None or m.decode_tps is None:
            found.failed += 1
            return
        seen = stamped(recording)
        found.fused += sum(one[0] == other[0] for one, other in pairwise(seen))
        found.stream(seen, m.ttft_s, m.decode_tps)

    return run, note


def stamped(recording: Recording) -> list[tuple[int, int, int]]:
    tape = recording.tape
    found = []
    for match in TRUTH.finditer(tape.body):
        end = tape.body.find(b"\n\n", match.end()) + 2
        found.append((stamp_at(tape, end), int(match[2]) - OFFSET, int(match[1])))
    return found


def plain(read: Callable[[], Awaitable[object]]) -> tuple[Round, Callable[[Found, object], None]]:
    """A way that stamps as its chunks come: `read` gives its start and (stamp, written, arrived) of each."""

    async def run(streams: int) -> list[object]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_of(read)) for _ in range(streams)]
        return [task.result() for task in tasks]

    def note(found: Found, result: object) -> None:
        start, seen = result  # type: ignore[misc]  # what `read` made
        window = (seen[-1][0] - seen[0][0]) / 1e9
        found.stream(seen, (seen[0][0] - start) / 1e9, (len(seen) - 1) / window if window else float("inf"))

    return run, note


async def _of(read: Callable[[], Awaitable[object]]) -> object:
    return await read()


def lines(url: str, tls: ssl.SSLContext | None) -> tuple[Round, Callable[[Found, object], None]]:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    client = httpx2.AsyncClient(verify=tls or True, timeout=None, limits=limits)

    async def read() -> object:
        seen = []
        start = time.monotonic_ns()
        async with client.stream("POST", f"{url}/chat/completions", json=BODY) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    chunk = json.loads(line[6:])
                    if chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                        seen.append((time.monotonic_ns(), chunk["wrote"] - OFFSET, chunk["arrived"]))
        return start, seen

    return plain(read)


def openai(url: str, tls: ssl.SSLContext | None) -> tuple[Round, Callable[[Found, object], None]]:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # type: ignore[import-not-found,unused-ignore]

    http = DefaultAsyncHttpxClient(verify=tls or True, timeout=None)
    client = AsyncOpenAI(base_url=url, api_key="none", http_client=http, max_retries=0)

    async def read() -> object:
        start = time.monotonic_ns()
        chunks = await client.chat.completions.create(**BODY)
        return start, [
            (time.monotonic_ns(), chunk.wrote - OFFSET, chunk.arrived)
            async for chunk in chunks
            if chunk.choices and chunk.choices[0].delta.content
        ]

    return plain(read)


def block(loop: asyncio.AbstractEventLoop) -> None:
    """Hold the loop for 10 ms of every 60, as somebody else's code would."""
    time.sleep(0.010)
    loop.call_later(0.050, block, loop)


async def main(way: str, url: str, streams: int, rounds: int, *, blocked: bool, authority: str | None) -> Found:
    tls = ssl.create_default_context(cafile=authority) if authority else None
    match way:
        case "lines":
            run, note = lines(url, tls)
        case "openai":
            run, note = openai(url, tls)
        case _:
            run, note = ours(url, tls, kernel=way == "kernel")
    await run(min(streams, 5))
    if blocked:
        block(asyncio.get_running_loop())
    found = Found()
    for _ in range(rounds):
        began = time.process_time()
        results = await run(streams)
        found.cpu_us += (time.process_time() - began) * 1e6
        for result in results:
            note(found, result)
    return found


if __name__ == "__main__":
    way, url, streams, rounds, *more = sys.argv[1:]
    authority = next((each for each in more if each != "blocked"), None)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(main(way, url, int(streams), int(rounds), blocked="blocked" in more, authority=authority))
    print(json.dumps(asdict(found)))
