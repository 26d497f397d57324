"""The decision that follows from a run: judge, advance, announce, composed of pure parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from app.alerts.routing import speak
from app.catalog.load import Catalog
from app.clock import Clock
from app.dispatch.ports import Decide
from app.errors import BandwatchError
from app.expectation.expect import Workload, expect
from app.expectation.model import Expectation
from app.expectation.undeclared import expect_undeclared
from app.measurement.model import Run
from app.targets.model import Config, Deployment, Recipe, Target
from app.verdict.advance import advance
from app.verdict.judge import judge
from app.verdict.model import State
from app.verdict.outbox import Decision, Past


def expectation_of(target: Target, *, catalog: Catalog, context_tokens: int, prompt_tokens: int) -> Expectation | None:
    """What a target should reach with such calls; None where nothing known fits it.

    A deployment without a model takes the target's; without any deployment, model and host tell what they can.
    """
    work = Workload(context_tokens=context_tokens, prompt_tokens=prompt_tokens)
    declared = target.deployment
    try:
        if declared is None:
            return expect_undeclared(target.model, host=host_of(target), catalog=catalog, workload=work)
        if declared.model_spec is None:
            declared = replace(declared, model_spec=target.model)
        return expect(declared, catalog=catalog, workload=work)
    except BandwatchError:
        return None


def host_of(target: Target) -> str:
    """The host that a target's calls go to."""
    return urlsplit(target.provider.base_url).hostname or ""


@dataclass(slots=True, kw_only=True)
class Judgement:
    """Knows what each target should reach, and decides. One a process."""

    catalog: Catalog
    config: Callable[[], Config]
    clock: Clock
    new_id: Callable[[], str]
    base_url: str
    _known: dict[tuple[Deployment | None, str, str, Recipe], Expectation | None] = field(default_factory=dict)
    _states: dict[tuple[str, str], State] = field(default_factory=dict)

    def expectation(self, target: Target) -> Expectation | None:
        """What a target should reach with its own recipe; asked once, then remembered."""
        recipe = target.recipe
        key = (target.deployment, target.model, host_of(target), recipe)
        if key not in self._known:
            self._known[key] = expectation_of(
                target,
                catalog=self.catalog,
                context_tokens=recipe.prompt_tokens + recipe.output_tokens // 2,
                prompt_tokens=max(1, recipe.prompt_tokens),
            )
        return self._known[key]

    def flagged(self, target: str) -> bool:
        """Was the last verdict of the target, at any location that this process decided for, a bad one?"""
        good = {State.OK, State.UNKNOWN}
        return any(state not in good for (name, _), state in self._states.items() if name == target)

    def decide(self, target: Target, location: str, run: Run) -> Decide:
        """The pure function that the store calls with the past of a run."""
        config = self.config()
        now = max(self.clock.now(), run.finished_at)

        def decision(past: Past) -> Decision:
            verdict = judge(
                target=target,
                location=location,
                past=past,
                expectation=self.expectation(target),
                thresholds=config.thresholds,
                fit_for=config.fit_for,
                now=now,
                min_locations=config.min_locations,
            )
            self._states[target.name, location] = verdict.state
            step = advance(target=target, verdict=verdict, past=past, thresholds=config.thresholds, now=now, new_id=self.new_id)
            told = speak(step.changes, config=config, now=now, new_id=self.new_id, base_url=self.base_url)
            incidents = tuple(change.incident for change in told.changes)
            return Decision(
                verdict=verdict,
                advance=replace(step, incidents=incidents, changes=told.changes),
                announcements=told.announcements,
            )

        return decision
