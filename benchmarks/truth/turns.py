"""How long the loop stands still while 30 bodies of 200 chunks are read that ended together, read in three ways.

python -m benchmarks.truth.turns
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import uvloop

from app.measurement.measure import measure
from app.measurement.recording import Marks, Recording, StampSource, Tape
from benchmarks.truth.server import event

BODIES, CHUNKS, ROUNDS = 30, 200, 7


def recording() -> Recording:
    made = {"index": 0, "logprobs": None, "finish_reason": None}
    parts = [event(choices=[{**made, "delta": {"content": f" w{n}"}}], arrived=1, wrote=10**18) for n in range(CHUNKS)]
    end = event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    parts.append(end + event(choices=[], usage={"prompt_tokens": 60, "completion_tokens": CHUNKS}) + b"data: [DONE]\n\n")
    ends, total = array("q"), 0
    for part in parts:
        total += len(part)
        ends.append(total)
    stamps = array("q", [10**9 + number * 10**7 for number in range(len(parts))])
    return Recording(
        base_url="http://truth.example/v1",
        model="truth",
        recipe="chat-short",
        dialect="openai",
        marks=Marks(started=0, request_sent=1, closed=10**11),
        started_at=datetime.now(UTC),
        tape=Tape(body=b"".join(parts), stamps=stamps, ends=ends),
        status=200,
        headers=(("content-type", "text/event-stream"),),
        stamp_source=StampSource.KERNEL,
        ended=True,
    )


async def tick(lags: list[float], over: asyncio.Event) -> None:
    while not over.is_set():
        began = time.monotonic_ns()
        await asyncio.sleep(0.001)
        lags.append((time.monotonic_ns() - began) / 1e6 - 1)


async def worst(read: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Worst lag in ms, CPU in ms a body."""
    lags: list[float] = []
    over = asyncio.Event()

    async def each() -> None:
        await read()

    async with asyncio.TaskGroup() as group:
        group.create_task(tick(lags, over))
        await asyncio.sleep(0.05)
        lags.clear()
        began = time.process_time()
        async with asyncio.TaskGroup() as reads:
            for _ in range(BODIES):
                reads.create_task(each())
        spent = time.process_time() - began
        over.set()
    return max(lags), spent * 1e3 / BODIES


def main() -> None:
    taken = recording()

    async def at_once() -> None:
        measure(taken)

    async def in_a_thread() -> None:
        await asyncio.to_thread(measure, taken)

    turn = asyncio.Lock()

    async def one_a_turn() -> None:
        async with turn:
            measure(taken)
            await asyncio.sleep(0)

    for read in (at_once, in_a_thread, one_a_turn):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            rounds = sorted(runner.run(worst(read)) for _ in range(ROUNDS))
        lag, cpu = rounds[ROUNDS // 2]
        print(
            f"{read.__name__}: worst lag {lag:.1f} ms (median of {ROUNDS}; least {rounds[0][0]:.1f}), CPU {cpu:.2f} ms a body"
        )


if __name__ == "__main__":
    main()
