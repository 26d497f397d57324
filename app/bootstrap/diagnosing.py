"""Works off the diagnoses that people ask for: one at a time, by the worker of their location, within the budgets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

import structlog

from app.bootstrap.core import Core, new_id
from app.bootstrap.examine import expected_of
from app.bootstrap.supervise import pause_or_stop
from app.catalog.load import Catalog
from app.clock import Clock
from app.errors import BandwatchError
from app.probe.examine import Probes, examine
from app.storage.diagnoses import Asked, Diagnoses
from app.storage.ledger import Ledger
from app.targets.model import Config, Target
from app.verdict.diagnosis.course import BUDGET_TOKENS, Question, Step
from app.verdict.diagnosis.model import Before, Experiment
from app.verdict.diagnosis.report import before_of, diagnosis_json

log = structlog.get_logger()

LOOK_S = 2.0
"""How often a worker looks for what is asked for."""


@dataclass(slots=True, kw_only=True)
class Diagnosing:
    """Takes what is asked for at this worker's location."""

    location: str
    config: Callable[[], Config]
    catalog: Catalog
    clock: Clock
    prober: Probes
    ledger: Ledger
    diagnoses: Diagnoses

    async def run(self, stop: asyncio.Event) -> None:
        """Work off what is asked for until `stop` is set; a diagnosis under way is cut then."""
        while not stop.is_set():
            async with asyncio.TaskGroup() as group:
                work, ending = group.create_task(self.once()), group.create_task(stop.wait())
                await asyncio.wait({work, ending}, return_when=asyncio.FIRST_COMPLETED)
                work.cancel()
                ending.cancel()
            await pause_or_stop(LOOK_S, stop=stop)

    async def once(self) -> bool:
        """Work off one diagnosis; False where none waits."""
        asked = await self.diagnoses.take(self.location, now=self.clock.now())
        if asked is None:
            return False
        target = next((t for t in self.config().targets if t.name == asked.target), None)
        if target is None:
            await self._finish(asked, error="nobody knows this target any more")
            return True
        log.info("diagnosis_begins", target=asked.target, location=asked.location, id=asked.id)
        try:
            report = await self._examine(asked, target)
        except asyncio.CancelledError:
            with suppress(BandwatchError, OSError):
                await asyncio.shield(self._finish(asked, error="the worker was stopped"))
            raise
        except BandwatchError as error:
            await self._finish(asked, error=str(error))
        except Exception:
            await self._finish(asked, error="it broke off by an error of the monitor")
            raise
        else:
            await self._finish(asked, report=report)
        return True

    async def _finish(self, asked: Asked, *, report: Mapping[str, Any] | None = None, error: str | None = None) -> None:
        await self.diagnoses.finish(asked, now=self.clock.now(), report=report, error=error)
        log.info("diagnosis_ends", target=asked.target, id=asked.id, error=error, complaint=(report or {}).get("complaint"))

    async def _examine(self, asked: Asked, target: Target) -> dict[str, Any]:
        verdict = await self.diagnoses.verdict(asked) or {}
        earlier = await self.diagnoses.healthy(asked)
        stated = [Experiment(test) for test in asked.question.get("tests", ())]
        question = Question(
            target=target.name,
            seed=int(asked.id[:8], 16),
            budget_tokens=int(asked.question.get("budget_tokens", BUDGET_TOKENS)),
            most_streams=target.provider.max_concurrency,
            experiments=tuple(stated) or tuple(Experiment),
            expectation=expected_of(target, self.catalog),
            before=before_of(earlier) if earlier is not None else own_past(verdict),
            only_here=seen_only_here(verdict.get("reasons", ())),
        )
        told: list[Step] = []

        async def reserve(tokens: int) -> bool:
            step = told[-1]
            progress = {"experiment": str(step.experiment), "done": step.done, "of": step.of}
            await self.diagnoses.beat(asked.id, progress, now=self.clock.now())
            return await self.ledger.reserve(
                target=target, tokens=tokens, usd=None, day=self.clock.now().astimezone(UTC).date()
            )

        async def settle(reserved: int, used: int) -> None:
            day = self.clock.now().astimezone(UTC).date()
            await self.ledger.settle(target=target, day=day, reserved_tokens=reserved, used_tokens=used)

        # Streams of a diagnosis are compared with each other: all on fresh connections, as a probe's.
        found = await examine(
            replace(target, paused=False), question, prober=self.prober, progress=told.append, reserve=reserve, settle=settle
        )
        return diagnosis_json(found)


def diagnosing(core: Core, *, prober: Probes, ledger: Ledger) -> Diagnosing:
    """Of a worker's location and prober."""
    return Diagnosing(
        location=core.settings.location,
        config=lambda: core.holder.current,
        catalog=core.catalog,
        clock=core.clock,
        prober=prober,
        ledger=ledger,
        diagnoses=Diagnoses(database=core.database, owner=f"{core.settings.instance}/{new_id()}"),
    )


def own_past(verdict: Mapping[str, Any]) -> Before:
    """Without an earlier diagnosis, the target's own level of speed is what there is to compare with."""
    level = verdict.get("baseline")
    return Before(prose_tps=level) if isinstance(level, int | float) and level > 0 else Before()


def seen_only_here(reasons: object) -> bool | None:
    """What the verdict says of other locations; None: there are none that can tell."""
    codes = reasons if isinstance(reasons, list | tuple) else ()
    if "only_here" in codes:
        return True
    return False if "seen_from_several_locations" in codes else None
