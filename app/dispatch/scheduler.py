"""The scheduler: walks the grid once a second, and queues what has come due. Any number may run; one at a time is elected."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from apscheduler.events import EVENT_JOB_ERROR, JobExecutionEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from app.clock import Clock
from app.dispatch.plan import Plan, is_set_back, plan
from app.dispatch.ports import Mark
from app.dispatch.tick import Tick
from app.targets.grid import Walk
from app.targets.model import Config

log = structlog.get_logger()

TICK_S = 1.0
HANGS_S = 10.0
"""A tick takes milliseconds; one that takes this long waits for a database that is silent, and the next one tries anew."""
JOB = "grid"
SAVE_S = 4.0
"""The mark is saved with every queued tick, and at least this often: its age shows that ticks are finishing."""


@dataclass(slots=True, kw_only=True)
class Scheduler:
    """One walk of the grid per `tick()`. What it needs is passed in; it keeps nothing but how far it has walked."""

    clock: Clock
    config: Callable[[], Config]
    mark: Mark
    elected: Callable[[], Awaitable[bool]]
    """Is this scheduler the one that walks? Asked every second; holds or tries the advisory lock."""
    enqueue: Callable[[Any, Sequence[tuple[Tick, str]], datetime], Awaitable[int]]
    """Queues ticks on the connection of the transaction that saves the walk: both happen, or neither."""
    last_tick_at: datetime | None = None
    _saved: Walk | None = None
    """What the database remembers, as far as this one knows."""
    _walk: Walk | None = field(default=None)

    async def tick(self) -> Plan | None:
        """Queue what came due since the last walk; counts what is too late as missed. None: another one is elected."""
        if not await self.elected():
            self._walk = self._saved = None
            return None
        now = self.clock.now()
        if self._walk is None:
            self._saved = await self.mark.load()
        walk = self._walk or self._saved or Walk(at=now)
        if is_set_back(walk, now=now):
            log.warning("clock_set_back", seconds=round((walk.at - now).total_seconds(), 3), turn=walk.turn + 1)
            await self.mark.set_back(now)
        made = plan(self.config().targets, walk=walk, now=now)
        if made.due or made.missed or self._is_new(made.walk):
            if not await self.mark.save(
                made.walk,
                over=self._saved,
                missed=made.missed,
                within=lambda connection: self.enqueue(connection, made.due, now),
            ):
                log.warning("walk_overtaken")  # while this process was frozen, another one was elected
                self._walk = self._saved = None
                return None
            self._saved = made.walk
        self._walk = made.walk
        self.last_tick_at = now
        return made

    def _is_new(self, walk: Walk) -> bool:
        """Must the walk be saved although it handed out nothing?"""
        saved = self._saved
        if saved is None or walk.keys != saved.keys or walk.turn != saved.turn:
            return True
        return (walk.at - saved.at).total_seconds() >= SAVE_S


@dataclass(slots=True, kw_only=True)
class Ticker:
    """Calls `tick` once a second, never twice at once, ends one that hangs, and reports what goes wrong.

    APScheduler keeps its next run by the wall clock, and sleeps until then: with a clock set back by two hours, for two
    hours. So `keep`, which lives by the monotonic clock, looks whether the next run is as near as it should be.
    """

    scheduler: Scheduler
    hangs_s: float = HANGS_S
    _apscheduler: AsyncIOScheduler = field(default_factory=lambda: AsyncIOScheduler(timezone="UTC"))

    def start(self) -> None:
        """Begin, inside the running loop."""
        self._apscheduler.add_job(
            self._tick, "interval", seconds=TICK_S, id=JOB, max_instances=1, coalesce=True, misfire_grace_time=None
        )
        self._apscheduler.add_listener(_report, EVENT_JOB_ERROR)
        self._apscheduler.start()

    async def keep(self) -> None:
        """Begin the interval anew where the next run is too far away; called about once a second."""
        job = self._apscheduler.get_job(JOB)
        away_s = (job.next_run_time - self.scheduler.clock.now()).total_seconds()
        if away_s > 2 * TICK_S:
            log.warning("ticks_begin_anew", away_s=round(away_s, 3))
            job.reschedule("interval", seconds=TICK_S)

    def stop(self) -> None:
        """End; a tick that runs is cancelled."""
        self._apscheduler.shutdown(wait=False)

    async def _tick(self) -> None:
        async with asyncio.timeout(self.hangs_s):
            await self.scheduler.tick()


def _report(event: JobExecutionEvent) -> None:
    log.error("schedule_tick_failed", error=repr(event.exception))
