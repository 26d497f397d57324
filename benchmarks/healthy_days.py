"""Healthy targets, watched for thousands of simulated days: how many incidents open, and are any of them red?

    python benchmarks/healthy_days.py [--days 3000] [--seed 1]

Each target runs a machine drawn from the seed, as declared. At its slowest hour its R is that of a healthy published row;
around that it swings by day and night, varies from call to call, is rate-limited, fails and is spoilt now and then, and has
first tokens that wait. Every run is judged and advanced as the service does it.
"""

from __future__ import annotations

import argparse
import bisect
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random

from app.catalog.load import Catalog, load_catalog
from app.expectation.expect import Workload, expect
from app.expectation.model import Expectation
from app.measurement.model import Outcome
from app.measurement.window import Sample
from app.simulator.draw import draw_scene
from app.targets.model import Deployment, FitFor, Provider, Recipe, Target, Thresholds
from app.verdict.advance import advance
from app.verdict.judge import judge
from app.verdict.model import ChangeKind, Incident, IncidentState, Trail
from app.verdict.outbox import Past

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
SPELL_DAYS = 20
INTERVALS_S = (900.0, 1800.0, 3600.0)
R_OF_HEALTHY = ((0.0, 0.45), (0.05, 0.51), (0.10, 0.60), (0.25, 0.76), (0.50, 0.96), (0.75, 1.05), (0.90, 1.11), (1.0, 1.2))
"""Quantiles of observed over expected of healthy published rows."""
FAILS, LIMITED, SPOILT, SPIKES = 0.007, 0.003, 0.01, 0.01


def drawn_ratio(rng: Random) -> float:
    at = rng.random()
    index = max(1, bisect.bisect_left([q for q, _ in R_OF_HEALTHY], at))
    (q0, r0), (q1, r1) = R_OF_HEALTHY[index - 1], R_OF_HEALTHY[index]
    return r0 + (r1 - r0) * (at - q0) / (q1 - q0)


@dataclass(slots=True, kw_only=True)
class Watched:
    """One target and what the service knows of it."""

    number: int
    rng: Random
    expectation: Expectation
    every_s: float
    ratio: float = field(init=False)
    swing: float = field(init=False)
    noise: float = field(init=False)
    wait_s: float = field(init=False)
    trail: Trail = field(default_factory=Trail)
    runs: list[Sample] = field(default_factory=list)
    incidents: dict[str, Incident] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ratio, self.swing = drawn_ratio(self.rng), self.rng.uniform(0.0, 0.3)
        self.noise, self.wait_s = self.rng.uniform(0.02, 0.15), math.exp(self.rng.uniform(math.log(0.01), math.log(0.3)))

    def run(self, at: datetime) -> Sample:
        rng, day = self.rng, at.timestamp() / 86400
        chance = rng.random()
        if chance < FAILS:
            return Sample(started_at=at, outcome=Outcome.PROVIDER_ERROR, error_class="overloaded")
        if chance < FAILS + LIMITED:
            return Sample(started_at=at, outcome=Outcome.RATE_LIMITED, error_class="rate_limited")
        speed = self.ratio * (1 + self.swing * (1 + math.sin(2 * math.pi * day)) / 2) * (self.expectation.expected_tps or 0.0)
        wait = self.wait_s * rng.lognormvariate(0.0, 0.7) * (10 if rng.random() < SPIKES else 1)
        return Sample(
            started_at=at, outcome=Outcome.OK, decode_tps=speed * rng.lognormvariate(0.0, self.noise), tps_reliable=True,
            ttft_s=wait + (self.expectation.prefill_s or (0.1, 0.1))[1], ttft_reliable=True, connect_s=0.02,
            contaminated=rng.random() < SPOILT,
        )  # fmt: skip

    def watch(self, *, days: float, thresholds: Thresholds, ids: Iterator[int]) -> Iterator[tuple[str, str]]:
        """(rule, severity) of what opens or becomes graver."""
        provider = Provider(name="p", base_url="https://p.example/v1")
        target = Target(
            name=f"t{self.number}", provider=provider, model="m", every_s=self.every_s, recipe=Recipe(name="chat-short")
        )
        reach = int(thresholds.past_for(self.every_s) / self.every_s)
        stride = max(1, round(7 * 86400 / 400 / self.every_s))
        week = int(7 * 86400 / self.every_s)
        for tick in range(int(days * 86400 / self.every_s)):
            now = BEGIN + timedelta(seconds=self.every_s * tick)
            self.runs.append(self.run(now))
            older = self.runs[-reach - week : -reach][::-stride][::-1]
            past = Past(
                samples=tuple(self.runs[-reach:]), baseline=tuple(older), previous=None, trail=self.trail, locations={},
                open_incidents=tuple(i for i in self.incidents.values() if i.state is IncidentState.OPEN),
            )  # fmt: skip
            verdict = judge(target=target, location="here", past=past, expectation=self.expectation, thresholds=thresholds,
                            fit_for=FitFor(), now=now)  # fmt: skip
            done = advance(
                target=target, verdict=verdict, past=past, thresholds=thresholds, now=now, new_id=lambda: str(next(ids))
            )
            self.trail = done.trail
            self.incidents |= {incident.id: incident for incident in done.incidents}
            yield from (
                (change.incident.rule, str(change.incident.severity))
                for change in done.changes
                if change.kind in {ChangeKind.OPENED, ChangeKind.UPDATED}
            )


def healthy_days(days: int, *, seed: int, catalog: Catalog) -> Counter[tuple[str, str]]:
    """What opened over so many target-days."""
    opened: Counter[tuple[str, str]] = Counter()
    thresholds, ids = Thresholds(), count()
    for number in range(math.ceil(days / SPELL_DAYS)):
        rng = Random(f"{seed}/{number}")
        hidden = draw_scene(rng, catalog=catalog, speculates=False, load=1).host.hidden
        declared = Deployment(
            model_spec=hidden.model_spec, hardware=hidden.hardware, devices=hidden.devices, quantization=hidden.quantization
        )
        physics = expect(declared, catalog=catalog, workload=Workload(context_tokens=128, prompt_tokens=60))
        watched = Watched(number=number, rng=rng, expectation=physics, every_s=rng.choice(INTERVALS_S))
        opened.update(watched.watch(days=min(SPELL_DAYS, days - number * SPELL_DAYS), thresholds=thresholds, ids=ids))
    return opened


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--days", type=int, default=3000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args(arguments)
    opened = healthy_days(chosen.days, seed=chosen.seed, catalog=load_catalog())
    red = sum(n for (_, severity), n in opened.items() if severity == "critical")
    print(f"{chosen.days} healthy target-days: {red} red incidents, {sum(opened.values()) - red} warnings")
    for (rule, severity), n in opened.most_common():
        print(f"  {n} x {rule} {severity}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
