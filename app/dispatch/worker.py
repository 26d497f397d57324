"""The worker: a tick in, a stored run out. No database session is held while a provider is called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

import structlog

from app.clock import Clock
from app.dispatch.ports import Decide, Ledger, Prober
from app.dispatch.tick import Tick, TickResult
from app.errors import BandwatchError
from app.measurement.model import ErrorClass, Measurement, Outcome, Reading, Run
from app.measurement.recording import Recording
from app.targets.grid import is_late, is_missed
from app.targets.model import Config, Recipe, Target
from app.verdict.outbox import Claim

log = structlog.get_logger()

SPENDING = frozenset({Outcome.OK, Outcome.CONTENT_FILTER, Outcome.STALLED, Outcome.TRUNCATED, Outcome.EMPTY})
"""Outcomes that may have cost tokens although no usage came; what was reserved stays spent."""

INLINE_BYTES = 65_536
"""Bodies up to this size are packed in the loop (about 2 ms at most); larger ones in a thread."""


PATIENCE_S = 120.0
PAUSE_S = 0.5
T = TypeVar("T")
Told = tuple[TickResult | None, bool]


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
    keep: Callable[[Target, Recording, Reading], bytes | None]
    """The recording as a file, where it is worth keeping."""
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
    _running: dict[tuple[str, str], datetime] = field(default_factory=dict)

    async def handle(self, tick: Tick) -> TickResult | None:
        """Bring a tick to its one terminal result, and count it. None: somebody else already had, or is about to."""
        if self._running.get((tick.target, tick.location)) == tick.due_at:
            return None
        result, told = await self._handle(tick)
        if told:
            return result
        stands = await self._patiently(
            lambda: self.deps.ledger.finish(
                target=tick.target, location=tick.location, due_at=tick.due_at, result=result or TickResult.RUN
            )
        )
        return result if stands == result else None

    async def _patiently(self, step: Callable[[], Awaitable[T]]) -> T:
        """Ask the ledger again and again while the database is away: the job is held meanwhile, and nobody else takes it.

        Raises:
            BandwatchError, OSError: it has been away for too long.
        """
        began = self.deps.clock.monotonic_ns()
        while True:
            try:
                return await step()
            except (BandwatchError, OSError):
                if self.deps.clock.monotonic_ns() - began > PATIENCE_S * 1e9:
                    raise
                await self.deps.clock.sleep(PAUSE_S)

    async def _handle(self, tick: Tick) -> Told:
        """The result, and whether the ledger knows it already: a stored run tells it."""
        target = next((t for t in self.deps.config().targets if t.name == tick.target), None)
        if target is None or (target.paused and not tick.asked):
            return TickResult.SKIPPED_PAUSED, False
        if self._is_missed(tick, target):
            return TickResult.MISSED, False
        lateness_s = self._lateness_s(tick)
        key = (tick.target, tick.location)
        if key in self._running:
            return TickResult.SKIPPED_OVERLAP, False
        self._running[key] = tick.due_at
        self.stats.in_flight += 1
        self.stats.last_lateness_s = max(0.0, lateness_s)
        try:
            return await self._run(tick, target, late=is_late(lateness_s) and not tick.asked)
        finally:
            del self._running[key]
            self.stats.in_flight -= 1
            self.stats.last_finished_at = self.deps.clock.now()

    def _lateness_s(self, tick: Tick) -> float:
        return (self.deps.clock.now() - tick.due_at).total_seconds()

    def _is_missed(self, tick: Tick, target: Target) -> bool:
        """Is it too late to run? Never for a probe that a person asked for."""
        return not tick.asked and is_missed(self._lateness_s(tick), every_s=target.every_s)

    async def _run(self, tick: Tick, target: Target, *, late: bool) -> Told:
        claim = await self._patiently(
            lambda: self.deps.ledger.claim(
                target=tick.target, location=tick.location, due_at=tick.due_at, owner=self.deps.instance
            )
        )
        if claim is Claim.DONE:
            return None, False
        if claim is Claim.AGAIN:
            self.stats.repeated_calls += 1
            log.warning("tick_repeated", target=tick.target, location=tick.location, due_at=tick.due_at.isoformat())
        if self._is_missed(tick, target):
            return TickResult.MISSED, False  # the database was away for long
        started, began = self.deps.clock.now(), self.deps.clock.monotonic_ns()
        day = started.astimezone(UTC).date()
        planned = _planned(target.recipe)
        tokens, usd = sum(planned), self.deps.price(target, *planned)
        if not await self._patiently(lambda: self.deps.ledger.reserve(target=target, tokens=tokens, usd=usd, day=day)):
            return await self._store(self._skipped(tick, target, started), target, TickResult.SKIPPED_BUDGET)
        recording, reading = await self.deps.prober.probe(target, scheduled_at=tick.due_at)
        took = timedelta(microseconds=(self.deps.clock.monotonic_ns() - began) // 1000)
        kept = await self._kept(target, recording, reading)
        run = self._run_of(tick, target, (started, started + took), reading, kept=kept)
        told = await self._store(run, target, TickResult.LATE if late else TickResult.RUN)
        used = sum(_billed(reading.measurement, target.recipe))
        await self._settle(target, day=day, reserved=(tokens, usd), used=(used, run.cost_usd))
        return told

    async def _store(self, run: Run, target: Target, result: TickResult) -> Told:
        """Store with everything that follows; when the database is away, spool to disk so that nothing is lost."""
        decide = self.deps.decide(target, run.location, run)
        try:
            recorded = await self.deps.ledger.record(run, target=target, decide=decide, result=result)
        except (BandwatchError, OSError) as error:
            kept = self.deps.spool(run)
            self.stats.spooled += kept
            log.error("run_not_stored", target=run.target, spooled=kept, error=str(error))
            return result, False
        if not recorded.stored:
            log.info("run_already_stored", target=run.target, due_at=run.due_at.isoformat())
            return None, True
        return result, True

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

    async def _kept(self, target: Target, recording: Recording, reading: Reading) -> bytes | None:
        """The recording as a file, or None; a long one is packed in a thread, so that no other run's stamps are late."""
        if len(recording.tape.body) > INLINE_BYTES:
            return await asyncio.to_thread(self.deps.keep, target, recording, reading)
        return self.deps.keep(target, recording, reading)

    def _run_of(
        self, tick: Tick, target: Target, span: tuple[datetime, datetime], reading: Reading, *, kept: bytes | None
    ) -> Run:
        """A run; its end is its start and what the monotonic clock says that it took, however the wall clock is set."""
        measurement = reading.measurement
        return Run(
            id=self.deps.new_id(),
            target=tick.target,
            location=tick.location,
            due_at=tick.due_at,
            started_at=span[0],
            finished_at=span[1],
            provider=target.provider.name,
            model=target.model,
            recipe=target.recipe.name,
            measurement=measurement,
            cost_usd=self.deps.price(target, *_billed(measurement, target.recipe)),
            read_stamps_s=reading.read_stamps_s,
            read_tokens=reading.read_tokens,
            recording=kept,
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


def _planned(recipe: Recipe) -> tuple[int, int]:
    """(in, out) tokens that a run will use up at most; a paired recipe makes two calls."""
    calls = 2 if recipe.paired else 1
    return calls * recipe.prompt_tokens, calls * recipe.output_tokens


def _billed(m: Measurement, recipe: Recipe) -> tuple[int, int]:
    """(in, out) tokens that a run used up: what usage says, else what was reserved where the provider may have billed it."""
    before = (recipe.prompt_tokens, recipe.output_tokens) if m.cold_ttft_s is not None else (0, 0)
    if m.output_tokens is not None:
        tokens_in = recipe.prompt_tokens if m.prompt_tokens is None and m.output_tokens else m.prompt_tokens or 0
        return before[0] + tokens_in, before[1] + m.output_tokens
    return _planned(recipe) if m.outcome in SPENDING else before
