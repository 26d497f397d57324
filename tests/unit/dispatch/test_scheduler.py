"""The scheduler: hands out each tick once, counts what is too late, and remembers how far it has walked."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
import structlog

from app.clock import FakeClock, SystemClock
from app.dispatch.ports import Within
from app.dispatch.scheduler import Scheduler, Ticker
from app.dispatch.tick import Tick
from app.targets.grid import Walk
from app.targets.model import Config, Target
from tests.support.runs import NOW, target


@dataclass
class Desk:
    """A scheduler with everything around it in sight."""

    targets: list[Target] = field(default_factory=lambda: [target()])
    clock: FakeClock = field(default_factory=lambda: FakeClock(wall=NOW))
    is_elected: bool = True
    saved: Walk | None = None
    set_backs: list[datetime] = field(default_factory=list)
    saves: int = 0
    handed: list[tuple[float, datetime]] = field(default_factory=list)
    """For each tick, when it was handed out: seconds that have really passed, and the wall clock."""
    queued: list[Tick] = field(default_factory=list)
    missed: int = 0

    def scheduler(self) -> Scheduler:
        return Scheduler(
            clock=self.clock,
            config=lambda: Config(
                providers={each.provider.name: each.provider for each in self.targets}, targets=tuple(self.targets)
            ),
            mark=self,
            elected=self._elected,
            enqueue=self._enqueue,
        )

    async def load(self) -> Walk | None:
        return self.saved

    async def save(self, walk: Walk, *, over: Walk | None, missed: int = 0, within: Within | None = None) -> bool:
        if over != self.saved:
            return False
        assert within is not None
        await within(self)
        self.saved, self.saves, self.missed = walk, self.saves + 1, self.missed + missed
        return True

    async def set_back(self, now: datetime) -> None:
        self.set_backs.append(now)

    async def _elected(self) -> bool:
        return self.is_elected

    async def _enqueue(self, connection: object, ticks: Sequence[tuple[Tick, str]], now: datetime) -> int:
        self.handed += [(self.clock.monotonic_ns() / 1e9, now) for _ in ticks]
        fresh = [tick for tick, _ in ticks if tick.key not in {each.key for each in self.queued}]
        self.queued += fresh
        return len(fresh)

    def walk(self, scheduler: Scheduler, seconds: int) -> None:
        async def main() -> None:
            for _ in range(seconds):
                await scheduler.tick()
                self.clock.advance(1.0)

        asyncio.run(main())


def steps(ticks: Sequence[Tick]) -> set[float]:
    due = sorted(tick.due_at for tick in ticks)
    return {(later - earlier).total_seconds() for earlier, later in itertools.pairwise(due)}


def test_ten_minutes_hand_out_each_tick_of_the_grid_once() -> None:
    desk = Desk()
    desk.walk(desk.scheduler(), 600)
    on_grid = desk.queued[1:]  # the first is soon after the start, for people who wait for it
    assert len(on_grid) in {9, 10}
    assert steps(on_grid) == {60.0}
    assert desk.missed == 0


def test_one_that_is_not_elected_hands_out_nothing_and_says_so() -> None:
    desk = Desk(is_elected=False)
    assert asyncio.run(desk.scheduler().tick()) is None
    assert (desk.queued, desk.saves) == ([], 0)


def test_the_next_elected_goes_on_where_the_last_one_stopped() -> None:
    desk = Desk()
    desk.walk(desk.scheduler(), 300)
    handed_out = len(desk.queued)
    desk.clock.advance(20.0)
    desk.walk(desk.scheduler(), 300)
    assert steps(desk.queued[1:]) == {60.0}
    assert len(desk.queued) > handed_out
    assert desk.missed == 0


def test_an_hour_of_sleep_is_counted_as_missed_and_makes_no_burst() -> None:
    desk = Desk()
    scheduler = desk.scheduler()
    desk.walk(scheduler, 120)
    before = len(desk.queued)
    desk.clock.advance(3600.0)
    desk.walk(scheduler, 1)
    assert len(desk.queued) - before <= 1
    assert desk.missed in {59, 60}


def test_a_quiet_walk_still_saves_its_mark_every_four_seconds() -> None:
    desk = Desk(targets=[target(every_s=3600.0)])
    scheduler = desk.scheduler()
    desk.walk(scheduler, 3)
    quiet = desk.saves
    desk.walk(scheduler, 30)
    assert 6 <= desk.saves - quiet <= 9
    assert scheduler.last_tick_at == NOW + timedelta(seconds=32)


def test_a_tick_that_raises_is_reported_and_the_next_one_comes() -> None:
    desk = Desk()
    scheduler = desk.scheduler()
    called = asyncio.Event()
    calls = 0

    async def elected() -> bool:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("once")
        called.set()
        return False

    scheduler.elected = elected

    async def main() -> None:
        ticker = Ticker(scheduler=scheduler)
        ticker.start()
        try:
            async with asyncio.timeout(20):
                await called.wait()
        finally:
            ticker.stop()

    with structlog.testing.capture_logs() as logs:
        asyncio.run(main())
    assert [log["error"] for log in logs if log["event"] == "schedule_tick_failed"] == ["RuntimeError('once')"]


def test_a_next_run_that_went_far_away_with_the_clock_is_brought_back() -> None:
    desk = Desk()
    scheduler = desk.scheduler()
    scheduler.clock = SystemClock()
    again = asyncio.Event()

    async def elected() -> bool:
        again.set()
        return False

    scheduler.elected = elected

    async def main() -> None:
        ticker = Ticker(scheduler=scheduler)
        ticker.start()
        try:
            job = ticker._apscheduler.get_job("grid")
            await ticker.keep()
            assert job.next_run_time - scheduler.clock.now() <= timedelta(seconds=1)
            job.modify(next_run_time=scheduler.clock.now() + timedelta(hours=2))
            again.clear()
            await ticker.keep()
            async with asyncio.timeout(20):
                await again.wait()
        finally:
            ticker.stop()

    asyncio.run(main())


def test_a_tick_that_hangs_is_ended() -> None:
    desk = Desk()
    scheduler = desk.scheduler()

    async def elected() -> bool:
        await asyncio.Event().wait()
        return True

    scheduler.elected = elected
    ticker = Ticker(scheduler=scheduler, hangs_s=0.01)
    with pytest.raises(TimeoutError):
        asyncio.run(ticker._tick())


def test_a_scheduler_that_was_frozen_while_another_one_walked_counts_nothing_and_begins_where_that_one_is() -> None:
    desk = Desk()
    frozen, other = desk.scheduler(), desk.scheduler()
    desk.walk(frozen, 120)
    desk.walk(other, 600)
    reached, counted = desk.saved, desk.missed
    assert asyncio.run(frozen.tick()) is None
    assert (desk.saved, desk.missed) == (reached, counted)
    desk.walk(frozen, 120)
    keys = [tick.key for tick in desk.queued]
    assert len(keys) == len(set(keys)) in {14, 15}


def gaps(desk: Desk) -> list[float]:
    """Seconds that really passed from one tick that was handed out to the next."""
    return [later - earlier for (earlier, _), (later, _) in itertools.pairwise(desk.handed)]


@pytest.mark.parametrize("step_s", [-30.0, -95.0, -3600.0, -7200.0, -86400.0, 3600.0, 7200.0, 30 * 86400.0])
def test_a_clock_that_steps_makes_no_burst_and_no_hole(step_s: float) -> None:
    desk = Desk()
    scheduler = desk.scheduler()
    desk.walk(scheduler, 600)
    desk.clock.step(step_s)
    desk.walk(scheduler, 3600)
    keys = [tick.key for tick in desk.queued]
    assert len(keys) == len(set(keys)) == len(desk.handed)
    assert min(passed for passed, _ in desk.handed if passed >= 600.0) <= 661.0
    assert sum(not 59.0 <= gap <= 61.0 for gap in gaps(desk)) <= 3  # after the first of all, to the step, and from it on
    assert 69 <= len(keys) <= 73
    assert len(desk.set_backs) == (step_s < 0)


def test_a_clock_that_steps_back_and_forth_over_the_same_time_hands_out_ticks_of_their_own_each_time() -> None:
    desk = Desk()
    scheduler = desk.scheduler()
    for step_s in (-1800.0, 900.0, -1800.0, -1800.0, 3600.0, -3600.0):
        desk.walk(scheduler, 600)
        desk.clock.step(step_s)
    desk.walk(scheduler, 600)
    keys = [tick.key for tick in desk.queued]
    assert len(keys) == len(set(keys)) == len(desk.handed)
    assert max(gaps(desk)) <= 121.0


def test_another_scheduler_goes_on_in_the_turn_that_the_first_one_began() -> None:
    desk = Desk()
    desk.walk(desk.scheduler(), 600)
    desk.clock.step(-7200.0)
    desk.walk(desk.scheduler(), 300)
    desk.walk(desk.scheduler(), 300)
    keys = [tick.key for tick in desk.queued]
    assert len(keys) == len(set(keys)) == len(desk.handed)
    assert len(desk.set_backs) == 1
    assert max(gaps(desk)) <= 121.0


def test_a_clock_a_few_seconds_behind_the_last_elected_ones_repeats_nothing() -> None:
    desk = Desk()
    desk.walk(desk.scheduler(), 600)
    desk.clock.step(-5.0)
    desk.walk(desk.scheduler(), 600)
    assert desk.set_backs == []
    assert max(gaps(desk)) <= 66.0
    assert min(gaps(desk)[1:]) >= 59.0


@pytest.mark.parametrize("change", ["2026-03-29T01:00", "2026-10-25T01:00", "2026-04-04T15:00"])
def test_the_changes_of_summer_time_do_not_touch_the_grid(change: str) -> None:
    desk = Desk(clock=FakeClock(wall=datetime.fromisoformat(change).replace(tzinfo=UTC) - timedelta(hours=2)))
    desk.walk(desk.scheduler(), 4 * 3600)
    assert steps(desk.queued[1:]) == {60.0}
    assert len(desk.queued) in {240, 241}
    assert desk.missed == 0


@pytest.mark.parametrize("frozen_s", [5.0, 45.0, 600.0])
def test_a_process_that_was_frozen_runs_one_tick_at_most_and_counts_the_rest(frozen_s: float) -> None:
    desk = Desk()
    scheduler = desk.scheduler()
    desk.walk(scheduler, 600)
    before = len(desk.queued)
    desk.clock.advance(frozen_s)  # SIGSTOP and SIGCONT: both clocks go on
    desk.walk(scheduler, 1)
    assert len(desk.queued) - before <= 1
    desk.walk(scheduler, 600)
    assert abs(len(desk.queued) + desk.missed - (1201 + frozen_s) / 60) <= 2.0
