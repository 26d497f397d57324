"""A diagnosis from this machine now: a prober of its own, and nothing stored."""

from __future__ import annotations

import random
from collections.abc import Callable

from app.bootstrap.judgement import expectation_of
from app.catalog.load import Catalog
from app.clock import SystemClock
from app.expectation.model import Expectation
from app.probe.client import Clients
from app.probe.examine import examine
from app.probe.prober import Prober
from app.secrets import Secrets
from app.targets.model import Target
from app.verdict.diagnosis.course import Question, Step
from app.verdict.diagnosis.design import PREFILL_TOKENS, SHORT_TOKENS
from app.verdict.diagnosis.model import Diagnosis


def expected_of(target: Target, catalog: Catalog) -> Expectation | None:
    """What the target should reach with the prompts of a diagnosis; None where nothing is declared or known."""
    if target.deployment is None:
        return None
    return expectation_of(target, catalog=catalog, context_tokens=SHORT_TOKENS, prompt_tokens=PREFILL_TOKENS)


async def examine_now(target: Target, question: Question, *, secrets: Secrets, progress: Callable[[Step], None]) -> Diagnosis:
    """Diagnose a target over a wire that is closed again afterwards."""
    clients = Clients()
    prober = Prober(clients=clients, resolve=secrets.resolve, clock=SystemClock(), rng=random.SystemRandom())
    try:
        return await examine(target, question, prober=prober, progress=progress)
    finally:
        await clients.aclose()
