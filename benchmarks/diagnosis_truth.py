"""Diagnosis against the truth: providers whose machine and trouble are drawn from a seed, without sockets.

    python benchmarks/diagnosis_truth.py [--draws 200] [--seed 1000]

Prints, with sample sizes: how often speculation and prompt caches are found (and found where there are none), how often the
true machine lies in the feasible set of the speed that was observed, and how often the planted trouble is ranked first.
Limits were chosen on seeds 1 to 700 and 100,001 to 100,700; the default seeds are others.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from app.catalog.load import Catalog, load_catalog
from app.expectation.expect import Workload
from app.simulator.draw import Scene, Trouble, draw_scene, plant
from app.simulator.hidden import Pace, pace_of
from app.simulator.line import watch
from app.simulator.plan import plan
from app.targets.model import Deployment
from app.verdict.diagnosis.course import Question, diagnosis
from app.verdict.diagnosis.design import SHORT_TOKENS
from app.verdict.diagnosis.model import NOTHING_KNOWN, Before, Call, Diagnosis, Round, Trial

FAILS, SPOILT = 0.01, 0.01
"""Calls that go wrong, and calls that our own machine spoils."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """A scene that answers calls: what a provider over there and a client here would have made of them."""

    scene: Scene
    catalog: Catalog
    rng: Random
    reports_cache: bool
    _seen: set[int] = field(default_factory=set)
    _paces: dict[tuple[int, int], Pace] = field(default_factory=dict)

    def run(self, calls: Round) -> list[Trial]:
        return [self._call(call, others=len(calls) - 1) for call in calls]

    def _call(self, call: Call, *, others: int) -> Trial:
        host, rng = self.scene.host, self.rng
        known = {"test": call.test, "arm": call.arm, "pair": call.pair}
        if rng.random() < FAILS:
            return Trial(**known, outcome="provider_error")
        tokens, prompt = call.recipe.output_tokens, call.recipe.prompt_tokens
        cached = 0
        if call.recipe.prefix is not None and host.cache_tokens:
            cached = (prompt - 30) // host.cache_tokens * host.cache_tokens if call.recipe.prefix in self._seen else 0
            self._seen.add(call.recipe.prefix)
        made = plan(
            self._pace(others, prompt + tokens // 2), host.habits, tokens=tokens, prompt_tokens=prompt - cached, rng=rng,
            acceptance=host.hidden.acceptance(code=call.arm == "code"), draft=host.hidden.draft,
        )  # fmt: skip
        seen = watch(made, self.scene.line, rng=rng)
        window = seen.stamps_s[-1] - seen.stamps_s[0]
        spoilt = rng.random() < SPOILT
        return Trial(
            **known, outcome="ok", tokens_used=prompt + tokens, spoilt=spoilt,
            ttft_s=seen.stamps_s[0], tps=(tokens - seen.tokens[0]) / window if len(seen.stamps_s) >= 3 and window > 0 else None,
            prompt_tokens=prompt, cached_tokens=cached if self.reports_cache else None, connect_s=seen.connect_s,
            stamps_s=seen.stamps_s, tokens=tuple(map(float, seen.tokens)),
        )  # fmt: skip

    def _pace(self, others: int, context: int) -> Pace:
        key = (others, context)
        if key not in self._paces:
            self._paces[key] = pace_of(self.scene.host.hidden, catalog=self.catalog, others=others, context_tokens=context)
        return self._paces[key]


def diagnose(
    scene: Scene, *, catalog: Catalog, seed: int, before: Before = NOTHING_KNOWN, reports_cache: bool = False
) -> Diagnosis:
    """A whole diagnosis of a scene."""
    rng = Random(seed)
    stage = Stage(scene=scene, catalog=catalog, rng=rng, reports_cache=reports_cache)
    steps = diagnosis(Question(target="drawn", seed=seed, before=before))
    step = next(steps)
    while True:
        try:
            step = steps.send(stage.run(step.round))
        except StopIteration as done:
            return done.value


@dataclass(slots=True)
class Share:
    """Hits of tries."""

    hits: int = 0
    of: int = 0

    def add(self, hit: bool) -> None:  # noqa: FBT001 - a count
        self.hits += hit
        self.of += 1

    @property
    def value(self) -> float:
        return self.hits / self.of if self.of else math.nan

    def __str__(self) -> str:
        return f"{100 * self.value:5.1f} % ({self.hits} of {self.of})"


def found(draws: int, *, seed: int, catalog: Catalog) -> dict[str, Share]:
    """Speculation and caches, found and falsely found."""
    shares = {name: Share() for name in ("speculation found", "speculation falsely", "cache found", "cache falsely",
                                         "cache found by timing alone")}  # fmt: skip
    for number in range(draws):
        rng = Random(seed + number)
        scene = draw_scene(rng, catalog=catalog)
        reports = rng.random() < 0.5
        told = diagnose(scene, catalog=catalog, seed=seed + number, reports_cache=reports)
        shares["speculation found" if scene.host.hidden.draft else "speculation falsely"].add(bool(told.now.speculated))
        shares["cache found" if scene.host.cache_tokens else "cache falsely"].add(bool(told.now.cached))
        if scene.host.cache_tokens and not reports:
            shares["cache found by timing alone"].add(bool(told.now.cached))
    return shares


def explained(draws: int, *, seed: int, catalog: Catalog) -> dict[str, Share]:
    """Is the true machine among those that explain the observed speed of prose, without a word about it but the model?"""
    from app.expectation.feasible import feasible

    shares = {"plain": Share(), "speculating": Share()}
    for number in range(draws):
        scene = draw_scene(Random(seed + number), catalog=catalog)
        hidden = scene.host.hidden
        told = diagnose(scene, catalog=catalog, seed=seed + number)
        if told.now.prose_tps is None:
            continue
        found = feasible(
            catalog.model(hidden.model_spec),
            told.now.prose_tps,
            catalog=catalog,
            deployment=Deployment(speculation="unknown" if told.now.speculated else "off"),
            work=Workload(context_tokens=SHORT_TOKENS),
        )
        truth = found.explains(hidden.hardware, hidden.devices, hidden.quantization)
        shares["speculating" if hidden.draft else "plain"].add(truth)
    return shares


def ranked(draws: int, *, seed: int, catalog: Catalog) -> tuple[dict[str, Share], Counter[tuple[str, str]]]:
    """How often the planted trouble is ranked first, by trouble; and what was ranked first instead."""
    shares: dict[str, Share] = {str(trouble): Share() for trouble in Trouble} | {"nothing": Share()}
    mistaken: Counter[tuple[str, str]] = Counter()
    kinds: Sequence[Trouble | None] = (*Trouble, None)
    for number in range(draws):
        rng = Random(seed + number)
        trouble = kinds[number % len(kinds)]
        scene = draw_scene(
            rng, catalog=catalog,
            speculates=True if trouble is Trouble.SPECULATION_OFF else None,
            caches=True if trouble is Trouble.CACHE_LOST else None,
        )  # fmt: skip
        reports = rng.random() < 0.5
        before = diagnose(scene, catalog=catalog, seed=seed + number, reports_cache=reports).now
        after = scene if trouble is None else plant(scene, trouble, rng=rng, catalog=catalog)
        told = diagnose(after, catalog=catalog, seed=seed + number + 500_000, before=before, reports_cache=reports)
        truth = "nothing" if trouble is None else str(trouble)
        first = str(told.suspects[0].cause)
        shares[truth].add(first == truth)
        if first != truth:
            mistaken[truth, first] += 1
    return shares, mistaken


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--draws", type=int, default=200)
    options.add_argument("--seed", type=int, default=1000)
    chosen = options.parse_args(arguments)
    catalog = load_catalog()
    for name, share in found(chosen.draws, seed=chosen.seed, catalog=catalog).items():
        print(f"{name:32} {share}")
    sets = explained(chosen.draws, seed=chosen.seed + 50_000, catalog=catalog)
    for name, share in sets.items():
        print(f"true machine in the set: {name:11} {share}")
    print(f"true machine in the set: all         {Share(sum(s.hits for s in sets.values()), sum(s.of for s in sets.values()))}")
    shares, mistaken = ranked(chosen.draws, seed=chosen.seed + 100_000, catalog=catalog)
    for name, share in shares.items():
        print(f"ranked first: {name:18} {share}")
    planted = [share for name, share in shares.items() if name != "nothing"]
    print(f"ranked first: any planted        {Share(sum(s.hits for s in planted), sum(s.of for s in planted))}")
    for (truth, first), count in mistaken.most_common():
        print(f"  {count} x {truth} was called {first}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
