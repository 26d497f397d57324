"""The fake clock obeys the law of clocks: steps move the wall, never the monotonic one."""

import asyncio

from app.clock import FakeClock


def test_sleep_moves_both_clocks_and_a_step_moves_the_wall_alone() -> None:
    clock = FakeClock()
    before = clock.now()
    asyncio.run(clock.sleep(1.5))
    clock.step(-3600)
    assert clock.monotonic_ns() == 1_500_000_000
    assert (clock.now() - before).total_seconds() == 1.5 - 3600
