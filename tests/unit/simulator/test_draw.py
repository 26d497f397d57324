"""Drawn providers hold their models, and what is planted in them does what it is called."""

from dataclasses import replace
from random import Random
from statistics import mean, median

import pytest

from app.catalog.load import Catalog, load_catalog
from app.expectation.expect import Deployment, expect
from app.simulator.draw import GAIN, SLOWER, Scene, Trouble, draw_scene, plant
from app.simulator.hidden import Hidden, pace_of
from app.simulator.plan import Habits, plan

SEEDS = range(12)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def drawn(seed: int, catalog: Catalog) -> Scene:
    return draw_scene(Random(seed), catalog=catalog, speculates=True, caches=True)


def planted(seed: int, trouble: Trouble, catalog: Catalog) -> tuple[Scene, Scene]:
    scene = drawn(seed, catalog)
    return scene, plant(scene, trouble, rng=Random(seed), catalog=catalog)


def step_s(hidden: Hidden, catalog: Catalog) -> float:
    return pace_of(replace(hidden, speculation=None), catalog=catalog).step_s


def test_the_same_seed_draws_the_same_provider(catalog: Catalog) -> None:
    assert drawn(7, catalog) == drawn(7, catalog) != drawn(8, catalog)
    free = [draw_scene(Random(seed), catalog=catalog) for seed in range(40)]
    assert 8 < sum(scene.host.hidden.speculation is not None for scene in free) < 32
    assert 8 < sum(scene.host.cache_tokens > 0 for scene in free) < 32


@pytest.mark.parametrize("seed", SEEDS)
def test_every_drawn_machine_holds_its_model_and_every_draft_is_worth_it(seed: int, catalog: Catalog) -> None:
    hidden = drawn(seed, catalog).host.hidden
    declared = Deployment(
        model_spec=hidden.model_spec, hardware=hidden.hardware, devices=hidden.devices, quantization=hidden.quantization
    )
    assert expect(declared, catalog=catalog).fits
    assert hidden.speculation is not None
    assert hidden.speculation.speedup >= GAIN


@pytest.mark.parametrize("seed", SEEDS)
def test_troubles_do_what_they_are_called(seed: int, catalog: Catalog) -> None:
    scene, queued = planted(seed, Trouble.QUEUE, catalog)
    assert queued.host.habits.queue_median_s >= 0.4 > scene.host.habits.queue_median_s
    scene, crowded = planted(seed, Trouble.CONTENTION, catalog)
    habits = crowded.host.habits
    assert step_s(crowded.host.hidden, catalog) + habits.intrusion * habits.intrusion_s >= 0.99 * SLOWER * step_s(
        scene.host.hidden, catalog
    )
    scene, spilt = planted(seed, Trouble.SPILL, catalog)
    assert 0.119 < step_s(scene.host.hidden, catalog) / step_s(spilt.host.hidden, catalog) < 0.5
    assert planted(seed, Trouble.SPECULATION_OFF, catalog)[1].host.hidden.draft == 0
    assert planted(seed, Trouble.CACHE_LOST, catalog)[1].host.cache_tokens == 0
    scene, far = planted(seed, Trouble.NETWORK, catalog)
    assert far.line.rtt_s >= 0.2 + scene.line.rtt_s
    assert far.host == scene.host


def test_others_on_the_engine_cost_by_their_own_contexts(catalog: Catalog) -> None:
    hidden = Hidden(model_spec="meta-llama/Llama-3.1-8B-Instruct", hardware="H100-SXM-80GB", batch=16)
    same, long = (pace_of(replace(hidden, others_context=n), catalog=catalog).step_s for n in (256, 8000))
    assert same == pace_of(hidden, catalog=catalog, context_tokens=256).step_s
    assert long > 1.5 * same


def test_weights_in_host_memory_come_over_pcie_in_each_step(catalog: Catalog) -> None:
    hidden = Hidden(model_spec="meta-llama/Llama-3.1-8B-Instruct", hardware="H100-SXM-80GB")
    whole, spilt = (pace_of(replace(hidden, spill=share), catalog=catalog) for share in (0.0, 0.25))
    assert spilt.step_s - whole.step_s == pytest.approx(0.25 * 15.0e9 / 50e9, rel=0.01)
    assert spilt.prefill_floor_s - whole.prefill_floor_s == pytest.approx(spilt.step_s - whole.step_s)


def test_sway_and_intrusions_are_what_they_say(catalog: Catalog) -> None:
    pace = pace_of(Hidden(model_spec="meta-llama/Llama-3.1-8B-Instruct", hardware="H100-SXM-80GB"), catalog=catalog)

    def spans(habits: Habits, prompt: int = 16) -> list[float]:
        plans = [plan(pace, habits, tokens=200, prompt_tokens=prompt, rng=Random(seed)) for seed in range(200)]
        return [made.end_s - made.queue_s - made.prefill_s for made in plans]

    still = spans(Habits())
    swayed = spans(Habits(sway=0.2))
    assert median(swayed) == pytest.approx(still[0], rel=0.05)
    assert max(swayed) > 1.3 * still[0]
    intruded = spans(Habits(intrusion=0.1, intrusion_s=0.02))
    assert mean(intruded) - still[0] == pytest.approx(200 * 0.1 * 0.02, rel=0.1)
