"""The scheduler: walks the grid once a second, and queues what has come due. Any number may run; one at a time is elected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from apscheduler.events import EVENT_JOB_ERROR, JobExecutionEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from app.clock import Clock
from app.dispatch.plan import Plan, plan
from app.dispatch.ports import Mark
from app.dispatch.tick import Tick, TickResult
from app.targets.model import Config

log = structlog.get_logger()

TICK_S = 1.0
SAVE_S = 10.0
"""The mark is saved with every queued tick, and at least this often: its age shows that ticks are finishing."""


@dataclass(slots=True, kw_only=True)
class Scheduler:
    """One walk of the grid per `tick()`. What it needs is passed in; it keeps nothing but how far it has walked."""

    clock: Clock
    config: Callable[[], Config]
    mark: Mark
    elected: Callable[[], Awaitable[bool]]
    """Is this scheduler the one that walks? Asked every second; holds or tries the advisory lock."""
    enqueue: Callable[[Sequence[tuple[Tick, str]], datetime], Awaitable[int]]
    count_tick: Callable[[str, int], Awaitable[None]]
    last_tick_at: datetime | None = None
    _saved: datetime | None = None
    _walked: tuple[datetime, frozenset[str]] | None = field(default=None)

    async def tick(self) -> Plan | None:
        """Queue what came due since the last walk; counts what is too late as missed. None: another one is elected."""
        if not await self.elected():
            self._walked = None
            return None
        now = self.clock.now()
        since, known = self._walked or await self._remembered(now)
        made = plan(self.config().targets, since=since, until=now, known=known)
        fresh = await self.enqueue(made.due, now)
        if made.missed:
            await self.count_tick(TickResult.MISSED, made.missed)
        if overlap := len(made.due) - fresh:
            log.info("ticks_already_queued", count=overlap)
        if (
            made.due
            or made.missed
            or known != made.keys
            or self._saved is None
            or abs((now - self._saved).total_seconds()) >= SAVE_S
        ):
            await self.mark.save(now, sorted(made.keys))
            self._saved = now
        self._walked = (now, made.keys)
        self.last_tick_at = now
        return made

    async def _remembered(self, now: datetime) -> tuple[datetime, frozenset[str]]:
        """Where the last elected scheduler stopped; a first start walks from now."""
        at, keys = await self.mark.load()
        if at is None:
            return now, frozenset()
        return at, frozenset(keys)


def drive(scheduler: Scheduler) -> AsyncIOScheduler:
    """An APScheduler that calls `tick` once a second, never twice at once, and reports what it raises.

    The caller starts it inside the running loop, and shuts it down.
    """
    ticker = AsyncIOScheduler(timezone="UTC")
    ticker.add_job(
        scheduler.tick, "interval", seconds=TICK_S, id="grid", max_instances=1, coalesce=True, misfire_grace_time=None
    )

    def report(event: JobExecutionEvent) -> None:
        log.error("schedule_tick_failed", error=repr(event.exception))

    ticker.add_listener(report, EVENT_JOB_ERROR)
    return ticker
