"""Runs and targets as tests want them: plausible, with what matters given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from app.expectation.model import Confidence
from app.measurement.model import ErrorClass, Measurement, Outcome, Reliable, Run
from app.targets.model import Budget, Provider, Recipe, Target
from app.verdict.model import Advance, Severity, State, Verdict
from app.verdict.outbox import Decision, Past

NOW = datetime.now(UTC).replace(microsecond=0)


def target(
    name: str = "p/m", *, every_s: float = 60.0, budget: Budget = Budget(), provider_budget: Budget = Budget()
) -> Target:
    return Target(
        name=name,
        provider=Provider(name="p", base_url="http://127.0.0.1:1/v1", budget=provider_budget),
        model="m",
        every_s=every_s,
        recipe=Recipe(name="chat-short"),
        budget=budget,
    )


def run(
    at: datetime = NOW, *, outcome: Outcome = Outcome.OK, tps: float = 100.0, name: str = "p/m", recording: bytes | None = None
) -> Run:
    ok = outcome is Outcome.OK
    return Run(
        id=uuid4().hex,
        target=name,
        location="default",
        due_at=at,
        started_at=at,
        finished_at=at + timedelta(seconds=1),
        provider="p",
        model="m",
        recipe="chat-short",
        measurement=Measurement(
            outcome=outcome,
            error_class=ErrorClass.NONE if ok else ErrorClass.SERVER_ERROR,
            ttft_s=0.2 if ok else None,
            decode_tps=tps if ok else None,
            tpot_s=1 / tps if ok else None,
            output_tokens=128 if ok else None,
            prompt_tokens=60 if ok else None,
            reliable=Reliable(ttft=ok, tps=ok),
            total_s=1.0,
        ),
        read_stamps_s=(0.2, 0.3) if ok else (),
        read_tokens=(1.0, 127.0) if ok else (),
        recording=recording,
    )


def decide(past: Past) -> Decision:
    """A decision that says ok, with as many samples as the past has."""
    at = past.samples[-1].started_at
    verdict = Verdict(
        target="p/m",
        location="default",
        state=State.OK,
        severity=Severity.NONE,
        since=at,
        checked_at=at,
        samples=len(past.samples),
        confidence=Confidence.HIGH,
    )
    return Decision(verdict=verdict, advance=Advance(trail=past.trail))
