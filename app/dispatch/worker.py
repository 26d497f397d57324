"""The worker: a tick in, a stored run out. No database session is held while a provider is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import structlog

from app.clock import Clock
from app.dispatch.ports import Decide, Ledger, Prober
from app.dispatch.tick import Tick, TickResult
from app.errors import BandwatchError
from app.measurement.model import ErrorClass, Measurement, Outcome, Reading, Run
from app.measurement.recording import Recording
from app.targets.grid import is_late, is_missed
from app.targets.model import Config, Target
from app.verdict.outbox import Claim

log = structlog.get_logger()

SPENDING = frozenset({Outcome.OK, Outcome.CONTENT_FILTER, Outcome.STALLED, Outcome.TRUNCATED, Outcome.EMPTY})
"""Outcomes that may have cost tokens although no usage came; what was reserved stays spent."""


@dataclass(slots=True)
class Stats:
    """What the worker says of itself with each heartbeat."""

    in_flight: int = 0
    last_finished_at: datetime | None = None
    last_lateness_s: float = 0.0
    repeated_calls: int = 0
    spooled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """What a worker is made of; all of it passed in by bootstrap."""

    ledger: Ledger
    prober: Prober
    clock: Clock
    config: Callable[[], Config]
    decide: Callable[[Target, str, Run], Decide]
    keep: Callable[[Recording, Reading], bytes | None]
    price: Callable[[Target, int, int], float | None]
    """USD of (target, tokens in, tokens out); None when no price is known."""
    new_id: Callable[[], str]
    spool: Callable[[Run], bool]
    """Keep a run on disk that could not be stored; False when there is no room."""
    instance: str


@dataclass(slots=True)
class Worker:
    """Runs ticks. One target at one location runs at most once at a time in one worker."""

    deps: Deps
    stats: Stats = field(default_factory=Stats)
    _running: set[tuple[str, str]] = field(default_factory=set)

    async def handle(self, tick: Tick) -> TickResult | None:
        """Bring a tick to its one terminal result, and count it. None: somebody else already had."""
        result = await self._handle(tick)
        if result is not None:
            await self.deps.ledger.count_tick(result)
        return result

    async def _handle(self, tick: Tick) -> TickResult | None:
        target = next((t for t in self.deps.config().targets if t.name == tick.target), None)
        if target is None or (target.paused and not tick.asked):
            return TickResult.SKIPPED_PAUSED
        lateness_s = (self.deps.clock.now() - tick.due_at).total_seconds()
        if is_missed(lateness_s, every_s=target.every_s) and not tick.asked:
            return TickResult.MISSED
        key = (tick.target, tick.location)
        if key in self._running:
            return TickResult.SKIPPED_OVERLAP
        self._running.add(key)
        self.stats.in_flight += 1
        self.stats.last_lateness_s = max(0.0, lateness_s)
        try:
            return await self._run(tick, target, late=is_late(lateness_s) and not tick.asked)
        finally:
            self._running.discard(key)
            self.stats.in_flight -= 1
            self.stats.last_finished_at = self.deps.clock.now()

    async def _run(self, tick: Tick, target: Target, *, late: bool) -> TickResult | None:
        claim = await self.deps.ledger.claim(
            target=tick.target, location=tick.location, due_at=tick.due_at, owner=self.deps.instance
        )
        if claim is Claim.DONE:
            return None
        if claim is Claim.AGAIN:
            self.stats.repeated_calls += 1
            log.warning("tick_repeated", target=tick.target, location=tick.location, due_at=tick.due_at.isoformat())
        started = self.deps.clock.now()
        day = started.astimezone(UTC).date()
        tokens = target.recipe.prompt_tokens + target.recipe.output_tokens
        usd = self.deps.price(target, target.recipe.prompt_tokens, target.recipe.output_tokens)
        if not await self.deps.ledger.reserve(target=target, tokens=tokens, usd=usd, day=day):
            await self._store(self._skipped(tick, target, started), target)
            return TickResult.SKIPPED_BUDGET
        recording, reading = await self.deps.prober.probe(target, scheduled_at=tick.due_at)
        run = self._run_of(tick, target, started, recording, reading)
        await self._store(run, target)
        used = _used_tokens(reading.measurement, reserved=tokens)
        await self._settle(target, day=day, reserved=(tokens, usd), used=(used, run.cost_usd))
        return TickResult.LATE if late else TickResult.RUN

    async def _store(self, run: Run, target: Target) -> None:
        """Store with everything that follows; when the database is away, spool to disk so that nothing is lost."""
        try:
            recorded = await self.deps.ledger.record(run, target=target, decide=self.deps.decide(target, run.location, run))
        except (BandwatchError, OSError) as error:
            kept = self.deps.spool(run)
            self.stats.spooled += kept
            log.error("run_not_stored", target=run.target, spooled=kept, error=str(error))
            return
        if not recorded.stored:
            log.info("run_already_stored", target=run.target, due_at=run.due_at.isoformat())

    async def _settle(
        self, target: Target, *, day: date, reserved: tuple[int, float | None], used: tuple[int, float | None]
    ) -> None:
        try:
            await self.deps.ledger.settle(
                target=target,
                day=day,
                reserved_tokens=reserved[0],
                used_tokens=used[0],
                reserved_usd=reserved[1],
                used_usd=used[1],
            )
        except (BandwatchError, OSError) as error:
            log.warning("budget_not_settled", target=target.name, error=str(error))

    def _run_of(self, tick: Tick, target: Target, started: datetime, recording: Recording, reading: Reading) -> Run:
        measurement = reading.measurement
        return Run(
            id=self.deps.new_id(),
            target=tick.target,
            location=tick.location,
            due_at=tick.due_at,
            started_at=started,
            finished_at=self.deps.clock.now(),
            provider=target.provider.name,
            model=target.model,
            recipe=target.recipe.name,
            measurement=measurement,
            cost_usd=self.deps.price(target, measurement.prompt_tokens or 0, measurement.output_tokens or 0),
            read_stamps_s=reading.read_stamps_s,
            read_tokens=reading.read_tokens,
            recording=self.deps.keep(recording, reading),
        )

    def _skipped(self, tick: Tick, target: Target, now: datetime) -> Run:
        return Run(
            id=self.deps.new_id(),
            target=tick.target,
            location=tick.location,
            due_at=tick.due_at,
            started_at=now,
            finished_at=now,
            provider=target.provider.name,
            model=target.model,
            recipe=target.recipe.name,
            measurement=Measurement(
                outcome=Outcome.SKIPPED_BUDGET, error_class=ErrorClass.BUDGET, error_text="the budget of the day is spent"
            ),
        )


def _used_tokens(m: Measurement, *, reserved: int) -> int:
    """Tokens that a run used up: what usage says, else all of the reservation where the provider may have billed it."""
    if m.output_tokens is not None:
        return (m.prompt_tokens or 0) + m.output_tokens
    return reserved if m.outcome in SPENDING else 0
