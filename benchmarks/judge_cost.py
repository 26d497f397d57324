"""What it costs to judge: 1,000 targets, each with a full window, a week of baseline and an expectation, then advance."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from itertools import count

from app.expectation.model import Basis, Confidence, Expectation
from app.measurement.model import Outcome
from app.measurement.window import Sample
from app.targets.model import FitFor, Provider, Recipe, Target, Thresholds
from app.verdict.advance import advance
from app.verdict.judge import judge
from app.verdict.model import Trail
from app.verdict.outbox import Past

TARGETS = 1000
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def _samples(chance: random.Random, n: int, *, every_s: float, until_s: float, speed: float) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            started_at=NOW - timedelta(seconds=until_s + every_s * (n - i)),
            outcome=Outcome.OK if chance.random() < 0.98 else Outcome.TIMEOUT,
            decode_tps=speed * chance.lognormvariate(0, 0.1),
            tps_reliable=True,
            ttft_s=0.2 * chance.lognormvariate(0, 0.3),
            ttft_reliable=True,
            connect_s=0.01,
        )
        for i in range(n)
    )


def main() -> None:
    chance = random.Random(1)
    provider = Provider(name="p", base_url="https://p.example/v1")
    cases = []
    for index in range(TARGETS):
        target = Target(name=f"t{index}", provider=provider, model="m", every_s=60.0, recipe=Recipe(name="chat-short"))
        expected = chance.uniform(30, 300)
        physics = Expectation(
            basis=Basis.DEPLOYMENT,
            confidence=Confidence.HIGH,
            expected_tps=expected,
            ceiling_tps=2 * expected,
            prefill_s=(0.01, 0.1),
        )
        past = Past(
            samples=_samples(chance, 45, every_s=60, until_s=10, speed=expected * chance.uniform(0.3, 1.3)),
            baseline=_samples(chance, 400, every_s=1500, until_s=3600, speed=expected),
            previous=None,
            trail=Trail(recent=(("ok", "none"),) * 12, taken_at=NOW - timedelta(minutes=6)),
            open_incidents=(),
            locations={},
        )
        cases.append((target, past, physics))
    thresholds, fit_for, ids = Thresholds(), FitFor(), count()
    begin = time.process_time()
    states: dict[str, int] = {}
    for target, past, physics in cases:
        verdict = judge(
            target=target, location="default", past=past, expectation=physics, thresholds=thresholds, fit_for=fit_for, now=NOW
        )
        advance(target=target, verdict=verdict, past=past, thresholds=thresholds, now=NOW, new_id=lambda: str(next(ids)))
        states[verdict.state] = states.get(verdict.state, 0) + 1
    spent = time.process_time() - begin
    print(f"{TARGETS} targets judged and advanced in {spent:.3f} s of CPU, {1e6 * spent / TARGETS:.0f} us each: {states}")


if __name__ == "__main__":
    main()
