"""Runs a diagnosis: the pure course of it says which calls to make, this makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from app.measurement.model import Outcome, Reading
from app.measurement.recording import Recording
from app.targets.model import Target
from app.verdict.diagnosis.course import Question, Step, diagnosis
from app.verdict.diagnosis.model import Call, Diagnosis, Round, Trial, trial_of


class Probes(Protocol):
    """Makes one call of a target and reads it; never raises for what the provider does."""

    async def probe(self, target: Target) -> tuple[Recording, Reading]:
        """One call."""
        ...


Reserve = Callable[[int], Awaitable[bool]]
"""Tokens -> may they be spent?"""
Settle = Callable[[int, int], Awaitable[None]]
"""Tokens that were reserved, and that were used."""


async def _always(_tokens: int) -> bool:
    return True


async def _nothing(_reserved: int, _used: int) -> None:
    return None


async def examine(
    target: Target,
    question: Question,
    *,
    prober: Probes,
    progress: Callable[[Step], None] = lambda _: None,
    reserve: Reserve = _always,
    settle: Settle = _nothing,
) -> Diagnosis:
    """Diagnose a target now.

    Args:
        target: whose provider, model, connection and deadlines are used; its recipe is not.
        question: what is to be found out, and for how many tokens.
        prober: makes the calls.
        progress: told of each round before it begins.
        reserve: asked before each round, for the budgets of the target and its provider.
        settle: told after each round what it used.

    Raises:
        asyncio.CancelledError: when told to stop; calls under way are cut.
    """
    steps = diagnosis(question)
    trials: Sequence[Trial] | None = None
    while True:
        try:
            step = steps.send(trials)  # type: ignore[arg-type]  # None begins a generator
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # what the generator returns
        progress(step)
        trials = await _round(target, step.round, prober=prober, reserve=reserve, settle=settle)


async def _round(target: Target, calls: Round, *, prober: Probes, reserve: Reserve, settle: Settle) -> list[Trial]:
    """Make the calls of a round at the same time."""
    tokens = sum(call.tokens for call in calls)
    if not await reserve(tokens):
        return [Trial(test=c.test, arm=c.arm, pair=c.pair, outcome=str(Outcome.SKIPPED_BUDGET)) for c in calls]

    async def one(call: Call) -> Trial:
        _, reading = await prober.probe(replace(target, recipe=call.recipe))
        return trial_of(call, reading)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(call)) for call in calls]
    trials = [task.result() for task in tasks]
    await settle(tokens, sum(trial.tokens_used for trial in trials))
    return trials
