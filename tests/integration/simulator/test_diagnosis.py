"""Whole diagnoses of simulated providers over real sockets: what is hidden there is found by the wire that the product uses."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from app.catalog.load import load_catalog
from app.clock import SystemClock
from app.expectation.speculation import Speculation
from app.probe.client import Clients
from app.probe.examine import examine
from app.probe.prober import Prober
from app.simulator.hidden import Hidden
from app.simulator.host import Host
from app.simulator.plan import Habits
from app.simulator.server import serve
from app.targets.model import Provider, Recipe, Target
from app.verdict.diagnosis.course import Question
from app.verdict.diagnosis.model import NOTHING_KNOWN, Before, Cause, Diagnosis

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
CALM = Habits(queue_median_s=0.01, queue_sigma=0.3, jitter=0.03)
HEALTHY = Host(
    name="healthy",
    model=MODEL,
    hidden=Hidden(model_spec=MODEL, hardware="H100-SXM-80GB", efficiency=0.7),
    habits=CALM,
    cache_tokens=64,
)
DRAFTS = replace(HEALTHY, name="drafts", hidden=replace(HEALTHY.hidden, speculation=Speculation(alpha=0.9, gamma=3, cost=0.1)))
QUEUES = replace(HEALTHY, name="queues", habits=replace(CALM, queue_median_s=0.8))
SPILT = replace(HEALTHY, name="spilt", hidden=replace(HEALTHY.hidden, spill=0.12))


async def told(port: int, host: Host, before: Before = NOTHING_KNOWN) -> Diagnosis:
    clients = Clients()
    prober = Prober(clients=clients, resolve=lambda _: "", clock=SystemClock(), rng=Random(1))
    provider = Provider(name=host.name, base_url=f"http://127.0.0.1:{port}/{host.name}/v1", dialect="vllm", max_concurrency=4)
    target = Target(name=host.name, provider=provider, model=MODEL, every_s=60, recipe=Recipe(name="prose"))
    try:
        return await examine(target, Question(target=host.name, seed=3, before=before), prober=prober)
    finally:
        await clients.aclose()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_handful_of_hidden_troubles_is_found_over_sockets() -> None:
    async def main() -> None:
        async with serve([HEALTHY, DRAFTS, QUEUES, SPILT], catalog=load_catalog()) as server:
            healthy = await told(server.port, HEALTHY)
            assert (healthy.now.speculated, healthy.now.cached) == (False, True)
            for host, cause in ((QUEUES, Cause.QUEUE), (SPILT, Cause.SPILL)):
                found = await told(server.port, host, healthy.now)
                assert (found.complaint, found.suspects[0].cause) == ("slow", cause), found.explanation
            drafts = await told(server.port, DRAFTS)
            assert drafts.now.speculated is True
            off = await told(server.port, HEALTHY, drafts.now)
            assert off.suspects[0].cause is Cause.SPECULATION_OFF, off.explanation

    asyncio.run(main())
