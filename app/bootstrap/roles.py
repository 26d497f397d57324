"""The probing roles: scheduler, worker, courier, each a supervised loop over one core."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog

from app.alerts.courier import Courier
from app.bootstrap.child import line
from app.bootstrap.core import Core, new_id
from app.bootstrap.diagnosing import diagnosing
from app.bootstrap.evidence import Evidence, Tariff
from app.bootstrap.judgement import Judgement
from app.bootstrap.probing import Watchful, build_prober
from app.bootstrap.supervise import every, supervise
from app.bootstrap.watch import Watch
from app.catalog.prices import load_prices
from app.dispatch.driver import pool_of
from app.dispatch.election import Election
from app.dispatch.queue import Queue
from app.dispatch.scheduler import TICK_S, Scheduler, Ticker
from app.dispatch.spool import Spool
from app.dispatch.tick import Tick
from app.dispatch.worker import Deps, Worker
from app.errors import BandwatchError
from app.storage.database import raw_dsn
from app.storage.incidents import Incidents
from app.storage.ledger import Ledger
from app.storage.outbox import Outbox
from app.storage.processes import Processes
from app.storage.schedule import ScheduleMark
from app.storage.targets import Made
from app.storage.upkeep import upkeep
from app.targets.model import Target

log = structlog.get_logger()

PROBING = ("scheduler", "worker", "courier")
BEAT_S = 5.0
CONFIG_S = 2.0
UPKEEP_S = 300.0
WATCH_S = 5.0
SPOOL_S = 5.0
CANARY_S = 5.0


@dataclass(slots=True, kw_only=True)
class Roles:
    """The roles of one process, and what they report."""

    core: Core
    names: Collection[str]
    _worker: Worker | None = None
    _prober: Watchful | None = None
    _scheduler: Scheduler | None = None
    _judgement: Judgement | None = None
    _line: uuid.UUID = field(default_factory=line)
    _spool: Spool = field(init=False)

    def __post_init__(self) -> None:
        self._spool = Spool(directory=self.core.settings.data / "spool")

    async def run(self) -> None:
        """Run until the core is told to stop; then let running probes finish, within the grace."""
        core = self.core
        async with asyncio.TaskGroup() as group:
            for name, loop in self._loops():
                group.create_task(supervise(name, loop, clock=core.clock, stop=core.stop), name=name)

    def _loops(self) -> Sequence[tuple[str, Callable[[], Awaitable[None]]]]:
        core = self.core
        loops: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("config", lambda: every(CONFIG_S, core.follow_config, stop=core.stop)),
            ("heartbeat", lambda: every(BEAT_S, self._beat, stop=core.stop)),
        ]
        if "scheduler" in self.names:
            loops += [
                ("scheduler", self._schedule),
                ("upkeep", lambda: every(UPKEEP_S, self._upkeep, stop=core.stop)),
                ("watch", self._watch),
            ]
        if "worker" in self.names:
            loops += [
                ("worker", self._work),
                ("spool", lambda: every(SPOOL_S, self._unspool, stop=core.stop)),
                ("diagnoses", self._diagnose),
                ("canary", lambda: every(CANARY_S, self._look, stop=core.stop)),
            ]
        if "courier" in self.names:
            loops.append(("courier", self._deliver))
        return loops

    async def _started(self) -> bool:
        """Wait for the schema; False when told to stop first."""
        waits = {asyncio.ensure_future(self.core.ready.wait()), asyncio.ensure_future(self.core.stop.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return not self.core.stop.is_set()

    async def _schedule(self) -> None:
        if not await self._started():
            return
        core = self.core
        async with AsyncExitStack() as stack:
            election = Election(connect=core.database.connect_raw)
            stack.push_async_callback(election.resign)
            self._scheduler = Scheduler(
                clock=core.clock,
                config=lambda: core.holder.current,
                mark=ScheduleMark(database=core.database),
                elected=election.elected,
                enqueue=lambda connection, ticks, now: Queue(connection=connection).enqueue(ticks, now),
            )
            ticker = Ticker(scheduler=self._scheduler)
            ticker.start()
            stack.callback(ticker.stop)
            await every(TICK_S, ticker.keep, stop=core.stop)

    async def _watch(self) -> None:
        if not await self._started():
            return
        core = self.core
        watch = Watch(
            incidents=Incidents(database=core.database),
            processes=Processes(database=core.database),
            outbox=Outbox(database=core.database),
            config=lambda: core.holder.current,
            clock=core.clock,
            new_id=new_id,
            base_url=core.base_url,
        )
        await core.holder.refresh(Made(database=core.database))  # else what the API made would be closed as deleted
        await every(WATCH_S, watch.look, stop=core.stop)

    async def _work(self) -> None:
        if not await self._started():
            return
        core = self.core
        async with AsyncExitStack() as stack:
            pool = await stack.enter_async_context(pool_of(raw_dsn(core.database.dsn)))
            self._prober = build_prober(core, stack)
            self._worker = Worker(self._deps(self._prober))
            await Queue(pool=pool, name=self._line).serve(
                self._worker.handle,
                location=core.settings.location,
                limits=lambda: {name: p.max_concurrency for name, p in core.holder.current.providers.items()},
                stop=core.stop,
            )

    def _deps(self, prober: Watchful) -> Deps:
        core, judge, holder = self.core, self._judge(), self.core.holder
        return Deps(
            ledger=self._ledger(),
            prober=prober,
            clock=core.clock,
            config=lambda: core.holder.current,
            decide=judge.decide,
            keep=Evidence(flagged=judge.flagged, clock=core.clock).keep,
            price=Tariff(prices=load_prices(holder.beside(holder.current.catalog))).usd,
            new_id=new_id,
            spool=self._spool.put,
            instance=core.settings.instance,
        )

    async def _deliver(self) -> None:
        if not await self._started():
            return
        await self._courier().run(self.core.stop)

    def _courier(self) -> Courier:
        core = self.core
        return Courier(
            outbox=Outbox(database=core.database),
            config=lambda: core.holder.current,
            secrets=core.secrets,
            redactor=core.redactor,
            clock=core.clock,
            rng=random.SystemRandom(),
            owner=f"{core.settings.instance}-{new_id()[:8]}",
        )

    async def _unspool(self) -> None:
        """Store what waited on disk, oldest first, as soon as the database takes it."""
        if not self.core.ready.is_set():
            return
        targets = {target.name: target for target in self.core.holder.current.targets}
        ledger, judge = self._ledger(), self._judge()
        for path, run in self._spool.waiting():
            target = targets.get(run.target)
            if target is not None:
                try:
                    await ledger.record(run, target=target, decide=judge.decide(target, run.location, run))
                except (BandwatchError, OSError):
                    return
            self._spool.done(path)

    async def _beat(self) -> None:
        core = self.core
        if not core.ready.is_set():
            return
        try:
            await Processes(database=core.database).beat(
                instance=f"{core.settings.instance}/{'+'.join(sorted(self.names))}",
                role="+".join(sorted(self.names)),
                location=core.settings.location,
                started_at=core.started_at,
                now=core.clock.now(),
                stats=self._stats(),
            )
        except BandwatchError as error:
            log.warning("heartbeat_failed", error=str(error))

    def _stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = {}
        if self._worker is not None and self._prober is not None:
            worker = self._worker.stats
            stats |= {
                "in_flight": worker.in_flight,
                "last_lateness_s": worker.last_lateness_s,
                "last_finished_at": _text(worker.last_finished_at),
                "repeated_calls": worker.repeated_calls,
                "spooled": worker.spooled,
                "loop_lag_s": self._prober.lag.recent_max_s(),
                "trouble": self._prober.trouble(),
            }
        if self._scheduler is not None:
            stats["last_tick_at"] = _text(self._scheduler.last_tick_at)
        return stats

    async def _diagnose(self) -> None:
        if self._prober is not None and self.core.ready.is_set():
            await diagnosing(self.core, prober=self._prober, ledger=self._ledger()).run(self.core.stop)

    async def _look(self) -> None:
        if self._prober is not None:
            await self._prober.canary.keep()

    async def _upkeep(self) -> None:
        core = self.core
        if core.ready.is_set():
            await upkeep(core.database, retention=core.holder.current.retention, now=core.clock.now())

    def _ledger(self) -> Ledger:
        core = self.core
        return Ledger(database=core.database, clock=core.clock, thresholds=lambda: core.holder.current.thresholds)

    def _judge(self) -> Judgement:
        core = self.core
        if self._judgement is None:
            self._judgement = Judgement(
                catalog=core.catalog,
                config=lambda: core.holder.current,
                clock=core.clock,
                new_id=new_id,
                base_url=core.base_url,
            )
        return self._judgement


async def ask_for_probe(core: Core, target: Target, location: str, at: datetime) -> None:
    """Queue a probe that a person waits for."""
    connection = await core.database.connect_raw()
    try:
        queue = Queue(connection=connection)
        await queue.enqueue([(Tick(target=target.name, location=location, due_at=at, asked=True), target.provider.name)], at)
    finally:
        await connection.close(timeout=2)


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
