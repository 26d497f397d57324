"""A hidden machine runs at the speed of the theory that the product expects."""

from dataclasses import replace

import pytest

from app.catalog.load import Catalog, load_catalog
from app.expectation.expect import Workload, expect
from app.expectation.speculation import Speculation
from app.simulator.hidden import Hidden, pace_of
from app.simulator.scenarios import SCENARIOS
from app.targets.model import Deployment

LLAMA = Hidden(model_spec="meta-llama/Llama-3.1-8B-Instruct", hardware="H100-SXM-80GB")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.mark.parametrize(
    "hidden",
    [
        LLAMA,
        replace(LLAMA, batch=8),
        replace(LLAMA, hardware="A10G-24GB", stack="lmdeploy"),
        Hidden(model_spec="meta-llama/Llama-3.3-70B-Instruct", hardware="H200-SXM-141GB", devices=4, quantization="FP8"),
        Hidden(model_spec="Qwen/Qwen3-30B-A3B", hardware="A100-SXM-80GB", quantization="GPTQ-INT4"),
        Hidden(model_spec="openai/gpt-oss-120b", hardware="GROQ-LPU-V1", devices=576, quantization="MXFP4"),
    ],
    ids=lambda h: f"{h.model_spec}-{h.hardware}-{h.batch}",
)
def test_one_step_takes_exactly_the_expected_time(hidden: Hidden, catalog: Catalog) -> None:
    expected = expect(
        Deployment(
            model_spec=hidden.model_spec,
            hardware=hidden.hardware,
            devices=hidden.devices,
            quantization=hidden.quantization,
            batch=hidden.batch,
            stack=hidden.stack,
        ),
        catalog=catalog,
        workload=Workload(context_tokens=512),
    )
    assert expected.expected_tps == pytest.approx(1 / pace_of(hidden, catalog=catalog, context_tokens=512).step_s, rel=1e-12)


def test_efficiency_stretches_everything(catalog: Catalog) -> None:
    whole, quarter = (pace_of(replace(LLAMA, efficiency=e), catalog=catalog) for e in (1.0, 0.25))
    assert quarter.step_s == 4 * whole.step_s
    assert quarter.prefill_s(500) == 4 * whole.prefill_s(500)


def test_a_draft_makes_a_step_dearer_by_its_cost(catalog: Catalog) -> None:
    drafting = replace(LLAMA, speculation=Speculation(alpha=0.8, gamma=4, cost=0.125))
    assert pace_of(drafting, catalog=catalog).step_s == 1.5 * pace_of(LLAMA, catalog=catalog).step_s
    assert drafting.acceptance(code=True) == 0.8
    assert drafting.acceptance(code=False) == pytest.approx(0.544)
    assert LLAMA.acceptance(code=True) == 0.0


def test_streams_that_share_the_engine_slow_each_other(catalog: Catalog) -> None:
    assert pace_of(LLAMA, catalog=catalog, others=7) == pace_of(replace(LLAMA, batch=8), catalog=catalog)
    assert pace_of(LLAMA, catalog=catalog, others=7).step_s > pace_of(LLAMA, catalog=catalog).step_s


def test_a_long_prompt_takes_longer_than_the_floor(catalog: Catalog) -> None:
    pace = pace_of(LLAMA, catalog=catalog)
    assert pace.prefill_s(1) == pace.prefill_floor_s
    assert pace.prefill_s(8192) == 2 * pace.prefill_s(4096)


def test_every_host_of_every_scenario_runs(catalog: Catalog) -> None:
    for hosts in SCENARIOS.values():
        assert len({host.name for host in hosts}) == len(hosts)
        for host in hosts:
            assert pace_of(host.hidden, catalog=catalog).step_s > 0
            assert sum(host.odds.values()) <= 1
