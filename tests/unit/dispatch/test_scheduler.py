"""The scheduler: hands out each tick once, counts what is too late, and remembers how far it has walked."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from app.clock import FakeClock
from app.dispatch.scheduler import Scheduler, drive
from app.dispatch.tick import Tick
from app.targets.model import Config, Target
from tests.support.runs import NOW, target


@dataclass
class Desk:
    """A scheduler with everything around it in sight."""

    targets: list[Target] = field(default_factory=lambda: [target()])
    clock: FakeClock = field(default_factory=lambda: FakeClock(wall=NOW))
    is_elected: bool = True
    saved: tuple[datetime | None, Sequence[str]] = (None, ())
    saves: int = 0
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
            count_tick=self._count,
        )

    async def load(self) -> tuple[datetime | None, Sequence[str]]:
        return self.saved

    async def save(self, at: datetime, keys: Sequence[str]) -> None:
        self.saved, self.saves = (at, keys), self.saves + 1

    async def _elected(self) -> bool:
        return self.is_elected

    async def _enqueue(self, ticks: Sequence[tuple[Tick, str]], _now: datetime) -> int:
        fresh = [tick for tick, _ in ticks if tick.key not in {each.key for each in self.queued}]
        self.queued += fresh
        return len(fresh)

    async def _count(self, _result: str, n: int) -> None:
        self.missed += n

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


def test_a_quiet_walk_still_saves_its_mark_every_ten_seconds() -> None:
    desk = Desk(targets=[target(every_s=3600.0)])
    scheduler = desk.scheduler()
    desk.walk(scheduler, 3)
    quiet = desk.saves
    desk.walk(scheduler, 30)
    assert 2 <= desk.saves - quiet <= 4
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
        ticker = drive(scheduler)
        ticker.start()
        try:
            async with asyncio.timeout(20):
                await called.wait()
        finally:
            ticker.shutdown(wait=False)

    with structlog.testing.capture_logs() as logs:
        asyncio.run(main())
    assert [log["error"] for log in logs if log["event"] == "schedule_tick_failed"] == ["RuntimeError('once')"]
