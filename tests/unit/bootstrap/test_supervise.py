"""A loop that fails is begun again; one that is told to stop ends."""

import asyncio

from app.bootstrap.supervise import every, supervise
from app.clock import SystemClock


def test_a_failing_loop_is_begun_again_until_stop() -> None:
    async def scenario() -> int:
        stop = asyncio.Event()
        begun = 0

        async def loop() -> None:
            nonlocal begun
            begun += 1
            if begun == 1:
                raise RuntimeError("the database went away")
            stop.set()

        async with asyncio.timeout(5):
            await supervise("x", loop, clock=SystemClock(), stop=stop)
        return begun

    assert asyncio.run(scenario()) == 2


def test_every_calls_at_once_and_ends_with_stop() -> None:
    async def scenario() -> int:
        stop = asyncio.Event()
        calls = 0

        async def step() -> None:
            nonlocal calls
            calls += 1
            stop.set()

        async with asyncio.timeout(5):
            await every(3600, step, stop=stop)
        return calls

    assert asyncio.run(scenario()) == 1
