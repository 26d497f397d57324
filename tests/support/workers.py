"""A ledger and a prober in memory, and a worker made of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from app.clock import FakeClock
from app.dispatch.ports import Decide
from app.dispatch.worker import Deps, Worker
from app.errors import UnavailableError
from app.measurement.model import Measurement, Reading, Run
from app.measurement.recording import Marks, Recording, Tape
from app.targets.model import Config, Target
from app.verdict.outbox import Claim, Recorded
from tests.support.runs import NOW, decide, run, target

SAID_OK = run().measurement


@dataclass
class FakeLedger:
    """Keeps what it is told; `away` makes the database unreachable, `room` is what budgets still allow."""

    claims: dict[tuple[str, str, datetime], Claim] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    finished: dict[tuple[str, str, datetime], str] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    reserved: list[tuple[int, float | None]] = field(default_factory=list)
    settled: list[dict[str, Any]] = field(default_factory=list)
    room: bool = True
    away: bool = False
    down_for: int = 0
    """How many more claims fail."""

    async def claim(self, *, target: str, location: str, due_at: datetime, owner: str) -> Claim:
        if self.down_for > 0:
            self.down_for -= 1
            raise UnavailableError("the database is away")
        key = (target, location, due_at)
        found = self.claims.get(key, Claim.NEW)
        self.claims[key] = Claim.AGAIN if found is Claim.NEW else found
        return found

    async def reserve(self, *, target: Target, tokens: int, usd: float | None, day: date) -> bool:
        if self.room:
            self.reserved.append((tokens, usd))
        return self.room

    async def settle(self, **amounts: Any) -> None:
        if self.away:
            raise UnavailableError("the database is away")
        self.settled.append(amounts)

    async def record(self, run: Run, *, target: Target, decide: Decide, result: str = "run") -> Recorded:
        if self.away:
            raise UnavailableError("the database is away")
        key = (run.target, run.location, run.due_at)
        stored = self.claims.get(key) is not Claim.DONE
        if stored:
            self.runs.append(run)
            await self.finish(target=run.target, location=run.location, due_at=run.due_at, result=result)
        self.claims[key] = Claim.DONE
        return Recorded(stored=stored, decision=None)

    async def finish(self, *, target: str, location: str, due_at: datetime, result: str) -> str:
        key = (target, location, due_at)
        if key not in self.finished:
            self.finished[key] = result
            self.counted[result] = self.counted.get(result, 0) + 1
        return self.finished[key]


@dataclass
class FakeProber:
    """Answers with `says`, after `gate` if there is one."""

    clock: FakeClock
    says: Measurement = SAID_OK
    gate: asyncio.Event | None = None
    called: int = 0
    body: bytes = b""

    async def probe(self, target: Target, *, scheduled_at: datetime | None = None) -> tuple[Recording, Reading]:
        self.called += 1
        if self.gate is not None:
            await self.gate.wait()
        self.clock.advance(1.0)
        recording = Recording(
            base_url=target.provider.base_url,
            model=target.model,
            recipe=target.recipe.name,
            dialect="openai",
            marks=Marks(started=0),
            started_at=self.clock.now(),
            tape=Tape.replayed(self.body),
        )
        return recording, Reading(measurement=self.says)


@dataclass
class Bench:
    """A worker with everything around it in sight."""

    targets: list[Target] = field(default_factory=lambda: [target()])
    clock: FakeClock = field(default_factory=lambda: FakeClock(wall=NOW))
    ledger: FakeLedger = field(default_factory=FakeLedger)
    price: Callable[[Target, int, int], float | None] = lambda _target, _tokens_in, _tokens_out: None
    spooled: list[Run] = field(default_factory=list)
    spool_has_room: bool = True
    prober: FakeProber = field(init=False)
    worker: Worker = field(init=False)

    def __post_init__(self) -> None:
        self.prober = FakeProber(clock=self.clock)
        self.worker = Worker(
            Deps(
                ledger=self.ledger,
                prober=self.prober,
                clock=self.clock,
                config=lambda: Config(
                    providers={each.provider.name: each.provider for each in self.targets}, targets=tuple(self.targets)
                ),
                decide=lambda *_: decide,
                keep=lambda *_: b"kept",
                price=self.price,
                new_id=iter("abcdefgh").__next__,
                spool=self._spool,
                instance="w1",
            )
        )

    def _spool(self, run: Run) -> bool:
        if self.spool_has_room:
            self.spooled.append(run)
        return self.spool_has_room
