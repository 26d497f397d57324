"""A loop that fails is begun again; one that is told to stop ends."""

import asyncio

from structlog.testing import capture_logs

from app.bootstrap.supervise import FIRST_PAUSE_S, every, supervise
from app.clock import FakeClock, SystemClock


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


def test_the_pause_grows_while_a_loop_fails_and_starts_anew_after_it_held_for_long() -> None:
    async def scenario() -> list[float]:
        clock, stop = FakeClock(), asyncio.Event()
        held = iter([0.0, 0.0, 61.0])

        async def loop() -> None:
            try:
                clock.advance(next(held))
            except StopIteration:
                stop.set()
            raise RuntimeError("again")

        with capture_logs() as logs:
            async with asyncio.timeout(20):
                await supervise("x", loop, clock=clock, stop=stop)
        return [log["pause_s"] for log in logs]

    first = FIRST_PAUSE_S
    assert asyncio.run(scenario()) == [first, 2 * first, 4 * first, 2 * first]


def test_a_cancelled_loop_is_not_begun_again() -> None:
    async def scenario() -> None:
        begun = asyncio.Event()

        async def loop() -> None:
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(supervise("x", loop, clock=SystemClock(), stop=asyncio.Event()))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    asyncio.run(scenario())
