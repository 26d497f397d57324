"""Machines that nobody declared: the set that explains a speed, and what bounds it (theory sections 6.5, 6.6)."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.catalog.load import load_catalog
from app.errors import UsageError
from app.expectation.constants import FEASIBLE, SPECULATION_MOST
from app.expectation.expect import expect
from app.expectation.feasible import COUNTS, FORMATS, RACKS, SERVED, Search, feasible, reach
from app.expectation.laws import ceiling_tps, expected_s
from app.expectation.machine import Workload, machine_of
from app.expectation.model import Basis, Confidence
from app.expectation.speculation import Speculation
from app.expectation.undeclared import expect_undeclared
from app.targets.deployment import Deployment

CATALOG = load_catalog()
LLAMA, MOE = CATALOG.model("llama-3.3-70b"), CATALOG.model("gpt-oss-120b")
WORK = Workload(context_tokens=512)


def search(asked: Deployment, model: str = "llama-3.3-70b") -> Search:
    return Search(
        model=CATALOG.model(model), catalog=CATALOG, asked=asked, work=WORK, formats=FORMATS, counts=COUNTS, kinds=None
    )


@pytest.mark.parametrize("model", ["llama-3.3-70b", "gpt-oss-120b", "deepseek-r1"])
@pytest.mark.parametrize(
    "asked", [Deployment(), Deployment(batch=4, stack="vllm-0.6"), Deployment(parallelism="pp", kv_bits=8.0)]
)
def test_a_rig_of_the_search_has_the_ceiling_and_the_time_of_the_laws(model: str, asked: Deployment) -> None:
    rigs = list(search(asked, model).rigs(crowd=32))
    assert len(rigs) > 100
    for rig in random.Random(1).sample(rigs, 60):
        declared = replace(asked, devices=rig.devices, quantization=rig.served.quantization.id)
        m, _ = machine_of(declared, CATALOG.model(model), rig.hardware, CATALOG, WORK)
        assert rig.ceiling_tps == pytest.approx(ceiling_tps(m))
        assert rig.alone_s == pytest.approx(expected_s(m))
        assert rig.crowded_s == pytest.approx(expected_s(replace(m, batch=32)))


def drawn(seed: int) -> tuple[str, Deployment, float]:
    """A hidden deployment that can hold its model, and the speed that it shows, as the simulator would draw it."""
    chance = random.Random(seed)
    while True:
        model = chance.choice(["llama-3.1-8b", "llama-3.3-70b", "qwen3-32b", "qwen3-30b-a3b", "gpt-oss-120b", "deepseek-r1"])
        hardware = chance.choice([h for h in CATALOG.accelerators.values() if h.kind in RACKS and h.confidence != "low"])
        hidden = Deployment(
            model_spec=model,
            hardware=hardware.id,
            devices=chance.choice(COUNTS),
            quantization=chance.choice(["BF16", "FP8", "GPTQ-INT4", "NVFP4"]),
            batch=chance.choice([1, 1, 2, 4, 8, 16, 32]),
        )
        if expect(hidden, catalog=CATALOG, workload=WORK).fits:
            break
    m, _ = machine_of(hidden, CATALOG.model(model), hardware, CATALOG, WORK)
    draft = Speculation(alpha=chance.uniform(0.5, 0.9), gamma=chance.randint(1, 4), cost=0.1) if chance.random() < 0.3 else None
    gain = 1.0 if draft is None else draft.speedup
    return model, hidden, gain / expected_s(m) * chance.lognormvariate(0, 0.15)


def test_the_true_deployment_is_in_the_set_in_at_least_95_of_100_draws() -> None:
    inside = 0
    for seed in range(200):
        model, hidden, tps = drawn(seed)
        asked = Deployment(hardware=hidden.hardware)  # accelerators are searched one by one: the others change nothing
        found = feasible(CATALOG.model(model), tps, catalog=CATALOG, deployment=asked, work=WORK)
        inside += found.explains(str(hidden.hardware), hidden.devices, hidden.quantization)
    assert inside >= 190, inside


def test_the_least_bandwidth_is_never_more_than_the_true_one() -> None:
    for seed in range(40):
        model, hidden, tps = drawn(seed)
        asked = Deployment(hardware=hidden.hardware)
        found = feasible(CATALOG.model(model), tps, catalog=CATALOG, deployment=asked, work=WORK)
        true = CATALOG.hardware_of(str(hidden.hardware)).bandwidth * (hidden.devices or 1)
        assert found.least_bandwidth_speculating <= true


def test_a_known_provider_speed_gives_the_bandwidth_that_the_theory_names() -> None:
    """525-683 t/s of gpt-oss-120b: 2.6-3.4 TB/s of 4.25-bit experts and a 16-bit rest (theory section 4)."""
    found = dict(feasible(MOE, 683.4, catalog=CATALOG, work=Workload(context_tokens=0)).bandwidth_by_bits)
    assert found[4.25] == pytest.approx(3.4e12, rel=0.02)


def test_405b_at_fp8_and_72_tokens_does_not_come_from_one_node_of_eight_h100_without_speculation() -> None:
    model = CATALOG.model("llama-3.1-405b")
    found = feasible(model, 72, catalog=CATALOG, work=Workload(context_tokens=0))
    assert not found.explains("H100-SXM-80GB", 8, "FP8", speculating=False)
    assert found.explains("H100-SXM-80GB", 8, "FP8")
    off = feasible(model, 72, catalog=CATALOG, deployment=Deployment(speculation="off"), work=Workload(context_tokens=0))
    assert not off.explains("H100-SXM-80GB", 8, "FP8")
    assert not any(each.speculating for each in off.explaining)


def test_what_is_declared_is_kept() -> None:
    asked = Deployment(hardware="h200", devices=4, quantization="fp8")
    found = feasible(LLAMA, 60, catalog=CATALOG, deployment=asked)
    assert [(each.hardware, each.plain) for each in found.explaining] == [("H200-SXM-141GB", ((4, "FP8"),))]
    assert (found.largest_bits, found.deployments) == (8.0, 1)


def test_a_speed_that_nothing_explains_leaves_an_empty_set_and_still_a_bound() -> None:
    found = feasible(LLAMA, 1e6, catalog=CATALOG)
    assert (found.deployments, found.largest_bits, found.largest_bits_speculating, found.explaining) == (0, None, None, ())
    assert found.least_bandwidth > 1e16


def test_sram_machines_explain_by_their_layers_and_tell_neither_number_nor_format() -> None:
    found = feasible(MOE, 500, catalog=CATALOG, deployment=Deployment(hardware="GROQ-LPU-V1", quantization="MXFP4"))
    assert found.explains("GROQ-LPU-V1", 576, "MXFP4", speculating=False)
    assert feasible(MOE, 5, catalog=CATALOG, deployment=Deployment(hardware="GROQ-LPU-V1")).deployments == 0
    fast = feasible(MOE, 3000, catalog=CATALOG, deployment=Deployment(hardware="GROQ-LPU-V1"))
    assert (fast.largest_bits, fast.explains("GROQ-LPU-V1", 576, "MXFP4")) == (None, True)
    assert not fast.explains("GROQ-LPU-V1", 576, "MXFP4", speculating=False)
    assert not fast.explains("H100-SXM-80GB", 8, "MXFP4")


@pytest.mark.parametrize("tps", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_that_is_none_is_refused(tps: float) -> None:
    with pytest.raises(UsageError, match="must be positive"):
        feasible(LLAMA, tps, catalog=CATALOG)


@settings(max_examples=8, deadline=None)
@given(tps=st.floats(1, 2000), factor=st.floats(1.01, 5))
def test_a_higher_speed_needs_more_bandwidth_and_allows_no_more_bits(tps: float, factor: float) -> None:
    slow, fast = feasible(LLAMA, tps, catalog=CATALOG), feasible(LLAMA, tps * factor, catalog=CATALOG)
    assert fast.least_bandwidth > slow.least_bandwidth
    assert fast.least_bandwidth_speculating == pytest.approx(fast.least_bandwidth / SPECULATION_MOST)
    needs = [need for _, need in fast.bandwidth_by_bits]
    assert needs == sorted(needs)


@settings(max_examples=8, deadline=None)
@given(tps=st.floats(1, 2000))
def test_speculation_only_widens_the_set(tps: float) -> None:
    off = feasible(LLAMA, tps, catalog=CATALOG, deployment=Deployment(speculation="off"))
    unknown = feasible(LLAMA, tps, catalog=CATALOG)
    assert off.deployments <= unknown.deployments
    assert (off.largest_bits or 0) <= (unknown.largest_bits_speculating or 0)


@settings(max_examples=20, deadline=None)
@given(share=st.floats(FEASIBLE[0] * 1.001, FEASIBLE[1] * 0.999))
def test_a_machine_at_any_speed_that_no_verdict_flags_explains_itself(share: float) -> None:
    declared = Deployment(
        model_spec="llama-3.3-70b", hardware="H100-SXM-80GB", devices=4, quantization="FP8", speculation="off"
    )
    expected = expect(declared, catalog=CATALOG).expected_tps or 0.0
    assert feasible(LLAMA, expected * share, catalog=CATALOG).explains("H100-SXM-80GB", 4, "FP8", speculating=False)


def test_known_acceptance_bounds_the_set_by_its_own_gain() -> None:
    asked = Deployment(hardware="H100-SXM-80GB", devices=2, quantization="FP8", speculation="0.7,3")
    ceiling = expect(replace(asked, model_spec="llama-3.3-70b", speculation="off"), catalog=CATALOG).ceiling_tps or 0.0
    assert feasible(LLAMA, ceiling * 1.2, catalog=CATALOG, deployment=asked).deployments == 1
    assert feasible(LLAMA, ceiling * 3.4, catalog=CATALOG, deployment=asked).deployments == 0
    on = replace(asked, speculation="on")
    assert feasible(LLAMA, ceiling * 1.2, catalog=CATALOG, deployment=on).largest_bits is None


def test_the_range_of_what_is_possible_holds_every_machine_in_it() -> None:
    asked = Deployment(model_spec="llama-3.3-70b", hardware="H100-SXM-80GB")
    slowest, fastest, ceiling, count = reach(LLAMA, catalog=CATALOG, deployment=asked, work=WORK)
    speeds = []
    for devices in COUNTS:
        for quantization in SERVED:
            one = expect(replace(asked, devices=devices, quantization=quantization), catalog=CATALOG, workload=WORK)
            speeds += [(one.expected_tps, one.ceiling_tps)] if one.fits else []
    assert (slowest, fastest) == (pytest.approx(min(s or 0 for s, _ in speeds)), pytest.approx(max(s or 0 for s, _ in speeds)))
    assert (ceiling, count) == (pytest.approx(max(c or 0 for _, c in speeds)), len(speeds))


def test_a_range_with_speculation_takes_its_gain() -> None:
    asked = Deployment(model_spec="llama-3.3-70b", hardware="H100-SXM-80GB")
    plain = reach(LLAMA, catalog=CATALOG, deployment=asked, work=WORK)
    fast = reach(LLAMA, catalog=CATALOG, deployment=replace(asked, speculation="0.8,3,0.1"), work=WORK)
    on = reach(LLAMA, catalog=CATALOG, deployment=replace(asked, speculation="on"), work=WORK)
    assert fast[1] == pytest.approx(plain[1] * 2.952 / 1.3)
    assert fast[2] == pytest.approx(plain[2] * 2.952)
    assert on[2] == pytest.approx(plain[2] * SPECULATION_MOST)


def test_a_model_that_nothing_holds_is_said_so() -> None:
    with pytest.raises(UsageError, match="can hold"):
        expect(Deployment(model_spec="deepseek-r1", hardware="T4-16GB"), catalog=CATALOG)


def test_an_observed_speed_rides_along_with_the_expectation() -> None:
    found = expect(Deployment(model_spec="gpt-oss-120b"), catalog=CATALOG, observed_tps=300)
    assert found.feasible is not None
    assert found.feasible.observed_tps == 300


@pytest.mark.parametrize(
    ("host", "hardware", "law"),
    [
        ("api.groq.com", "GROQ-LPU-V1", (36, 65)),
        ("api.cerebras.ai", "CEREBRAS-WSE-3", (8, 17)),
        ("API.SambaNova.ai.", "SAMBANOVA-SN40L", (27, 83)),
    ],
)
def test_providers_of_sram_machines_are_judged_by_layers_with_provenance(
    host: str, hardware: str, law: tuple[int, int]
) -> None:
    found = expect_undeclared("openai/gpt-oss-120b:free", host=host, catalog=CATALOG)
    assert found is not None
    assert (found.basis, found.hardware, found.expected_tps, found.ceiling_tps) == (Basis.LAYER_LAW, hardware, None, None)
    assert found.expected_range_tps == (pytest.approx(1e6 / 36 / law[1]), pytest.approx(1e6 / 36 / law[0]))
    assert found.confidence is Confidence.MEDIUM
    assert any("published" in each for each in found.assumptions)
    assert "taken for openai/gpt-oss-120b" in found.assumptions[0]


def test_any_other_host_is_a_feasible_range_that_never_flags() -> None:
    found = expect_undeclared("llama-3.3-70b", host="api.example.com", catalog=CATALOG)
    assert found is not None
    assert (found.basis, found.confidence, found.expected_tps) == (Basis.FEASIBLE_RANGE, Confidence.LOW, None)


@pytest.mark.parametrize("model", ["gpt-5", "claude-sonnet-4.5", ""])
def test_a_model_that_nobody_knows_has_no_expectation(model: str) -> None:
    assert expect_undeclared(model, host="api.groq.com", catalog=CATALOG) is None


def test_a_host_is_known_by_its_domain_and_not_by_its_ending() -> None:
    assert CATALOG.provider_of("notgroq.com") is None
    assert CATALOG.provider_of("groq.com") is not None
