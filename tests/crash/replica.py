"""A replica that dies where it is told to: `bandwatch serve` with a ledger and a sender that look for their sentence.

    BANDWATCH_TEST_CRASH=FOLDER python -m tests.crash.replica [--role R …] [--config FILE]

A file FOLDER/PID.POINT sentences the process with that number: it takes the file away and kills itself with -9 the next time
that it comes by the point. Points: `after_claim` (a tick is taken, the provider not yet called), `after_commit` (a result is stored,
its job not yet ended), `after_send` (a receiver has said yes, and nobody has noted it).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from app.alerts.answer import Answer
from app.alerts.courier import Courier
from app.alerts.sending import Sender
from app.bootstrap.probing import Watchful
from app.bootstrap.roles import Roles
from app.bootstrap.service import ROLES, Service
from app.cli.serve import loop_factory
from app.dispatch.ports import Prober
from app.dispatch.worker import Deps
from app.measurement.model import Reading, Run
from app.measurement.recording import Recording
from app.settings import load_settings
from app.storage.ledger import Ledger
from app.targets.model import Channel, Target
from app.verdict.outbox import Announcement, Claim, Decision, Past, Recorded
from tests.crash.journal import CALL, CLAIM, DEATH, note

VARIABLE = "BANDWATCH_TEST_CRASH"
POINTS = ("after_claim", "after_commit", "after_send")


@dataclass(frozen=True, slots=True)
class Fate:
    """Where this process dies, if it is sentenced."""

    folder: Path

    @property
    def claims(self) -> Path:
        """Where this process writes what it takes."""
        return self.folder.parent / "claims"

    def at(self, point: str) -> None:
        """Die here, if that is what was said."""
        sentence = self.folder / f"{os.getpid()}.{point}"
        if sentence.exists():
            note(self.claims, DEATH)
            sentence.unlink(missing_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(slots=True, kw_only=True)
class DoomedLedger(Ledger):
    """Dies after a claim, or after a commit."""

    fate: Fate

    async def claim(self, *, target: str, location: str, due_at: datetime, owner: str) -> Claim:
        claim = await Ledger.claim(self, target=target, location=location, due_at=due_at, owner=owner)
        if claim is not Claim.DONE:
            note(self.fate.claims, CLAIM, _tick(target, due_at))
            self.fate.at("after_claim")
        return claim

    async def record(self, run: Run, *, target: Target, decide: Callable[[Past], Decision], result: str = "run") -> Recorded:
        recorded = await Ledger.record(self, run, target=target, decide=decide, result=result)
        self.fate.at("after_commit")
        return recorded


@dataclass(frozen=True, slots=True)
class NotedProber:
    """Writes down which tick it calls a provider for, before it does."""

    inner: Prober
    claims: Path

    async def probe(self, target: Target, *, scheduled_at: datetime | None = None) -> tuple[Recording, Reading]:
        if scheduled_at is not None:
            note(self.claims, CALL, _tick(target.name, scheduled_at))
        return await self.inner.probe(target, scheduled_at=scheduled_at)


@dataclass(slots=True)
class DoomedSender:
    """Dies after a receiver has said yes."""

    inner: Sender
    fate: Fate

    async def send(self, channel: Channel, message: Announcement, *, now: datetime) -> Answer:
        answer = await self.inner.send(channel, message, now=now)
        if answer.ok:
            self.fate.at("after_send")
        return answer

    async def resend(self, channel: Channel, bodies: Sequence[Mapping[str, Any]], *, now: datetime) -> Answer:
        return await self.inner.resend(channel, bodies, now=now)

    async def aclose(self) -> None:
        await self.inner.aclose()


@dataclass(slots=True, kw_only=True)
class DoomedRoles(Roles):
    """The roles of `app.bootstrap`, over what may die."""

    fate: Fate

    def _ledger(self) -> Ledger:
        made = Roles._ledger(self)
        return DoomedLedger(database=made.database, clock=made.clock, thresholds=made.thresholds, fate=self.fate)

    def _deps(self, prober: Watchful) -> Deps:
        return replace(Roles._deps(self, prober), prober=NotedProber(prober, self.fate.claims))

    def _courier(self) -> Courier:
        courier = Roles._courier(self)
        courier.sender = DoomedSender(courier._post(), self.fate)
        return courier


def _tick(target: str, due_at: datetime) -> str:
    """All targets are at one location here."""
    return f"{target}|{due_at.isoformat()}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", dest="roles", action="append", choices=ROLES)
    parser.add_argument("--config", type=Path, required=True)
    options = parser.parse_args()
    fate = Fate(Path(os.environ[VARIABLE]))
    service = Service(
        settings=load_settings(),
        roles=options.roles or ROLES,
        config=options.config,
        make_roles=lambda core, names: DoomedRoles(core=core, names=names, fate=fate),
        program=("-m", "tests.crash.replica"),
    )
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(service.run())


if __name__ == "__main__":
    main()
