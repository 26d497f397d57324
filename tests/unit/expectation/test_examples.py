"""The arithmetic: 702 worked predictions, the theory's worked cases, and the laws that must hold everywhere."""

import csv
from pathlib import Path

import pytest

from app.catalog.load import load_catalog
from app.errors import UsageError
from app.expectation.expect import Workload, expect
from app.expectation.laws import prefill_flops
from app.expectation.model import Basis, Confidence, Expectation
from app.expectation.speculation import Speculation, parse_speculation
from app.expectation.weights import distinct_experts
from app.targets.model import Deployment

CATALOG = load_catalog()
with (Path(__file__).parents[3] / "benchmarks/data/expected_examples.csv").open() as _file:
    ROWS = list(csv.DictReader(_file))


def of(
    model: str, hardware: str, devices: int = 1, quantization: str | None = None, *, context: int = 2048, **more: object
) -> Expectation:
    deployment = Deployment(model_spec=model, hardware=hardware, devices=devices, quantization=quantization, **more)  # type: ignore[arg-type]
    return expect(deployment, catalog=CATALOG, workload=Workload(context_tokens=context))


def test_every_worked_prediction_is_met_within_one_percent() -> None:
    for row in ROWS:
        found = of(row["model_id"], row["hardware"], int(row["tp"]), row["quant"], batch=int(row["batch"]))
        assert found.ceiling_tps == pytest.approx(float(row["ceiling_tps_per_stream"]), rel=0.01), row
        assert found.expected_tps == pytest.approx(float(row["expected_tps_per_stream"]), rel=0.01), row
        assert found.weights_bytes == pytest.approx(float(row["weights_GB_total"]) * 1e9, rel=0.01), row
    assert len(ROWS) == 702


def test_seventy_billion_at_sixteen_bit_does_not_fit_one_h100_and_two_reach_31_of_48() -> None:
    one = of("llama-3.3-70b", "H100-SXM-80GB", 1, "FP16")
    two = of("llama-3.3-70b", "H100-SXM-80GB", 2, "FP16", context=0)
    assert one.fits is False
    assert any("impossible as declared" in each for each in one.assumptions)
    assert two.ceiling_tps == pytest.approx(48.2, abs=0.05)
    assert two.expected_tps == pytest.approx(31.0, abs=1.0)


@pytest.mark.parametrize(("quantization", "devices", "ceiling"), [("BF16", 1, 24.1), ("BF16", 2, 48.2), ("INT4", 1, 89)])
def test_ceilings_of_a_seventy_billion_model_on_h100_at_no_context(quantization: str, devices: int, ceiling: float) -> None:
    assert of("llama-3.3-70b", "H100-SXM-80GB", devices, quantization, context=0).ceiling_tps == pytest.approx(
        ceiling, rel=0.01
    )


def test_deepseek_r1_in_its_native_format_does_not_fit_eight_times_80_gb() -> None:
    found = of("deepseek-ai/DeepSeek-R1", "H100-SXM-80GB", 8)
    assert (found.quantization, found.fits) == ("FP8", False)
    assert found.weights_bytes == pytest.approx(671e9, rel=0.01)


def test_gpt_oss_120b_reads_five_gigabytes_a_token() -> None:
    assert of("gpt-oss-120b", "H100-SXM-80GB").weights_bytes_per_token == pytest.approx(5.0e9, rel=0.01)


@pytest.mark.parametrize(
    ("model", "batch", "experts"),
    [("deepseek-r1", 2, 15.8), ("deepseek-r1", 64, 222), ("qwen3-30b-a3b", 8, 51.6), ("gpt-oss-120b", 16, 51)],
)
def test_distinct_experts_grow_with_the_batch(model: str, batch: int, experts: float) -> None:
    assert distinct_experts(CATALOG.model(model), batch) == pytest.approx(experts, rel=0.01)


def test_an_sram_machine_is_judged_by_layers_and_has_no_ceiling() -> None:
    found = of("openai/gpt-oss-120b", "groq-lpu-v1", 576)
    assert (found.basis, found.ceiling_tps, found.layer_us) == (Basis.LAYER_LAW, None, 46.0)
    assert found.expected_tps == pytest.approx(1e6 / (36 * 46))


def test_the_quadratic_part_of_prefill_equals_the_linear_one_where_the_theory_says() -> None:
    model = CATALOG.model("llama-3.1-8b")
    n = 53_000
    linear = 2 * ((model.streamed or 0) - model.head) * n
    assert prefill_flops(model, n) == pytest.approx(2 * linear, rel=0.02)


def test_leviathan() -> None:
    assert Speculation(alpha=0.8, gamma=3, cost=0.1).tokens_per_step == pytest.approx(2.952)
    assert Speculation(alpha=0.8, gamma=3, cost=0.1).speedup == pytest.approx(2.952 / 1.3)
    plain, fast = of("qwen3-32b", "H100-SXM-80GB"), of("qwen3-32b", "H100-SXM-80GB", speculation="0.8,3,0.1")
    assert plain.ceiling_tps is not None
    assert fast.ceiling_tps == pytest.approx(plain.ceiling_tps * 2.952)


@pytest.mark.parametrize("text", ["x", "0.5", "2,3", "0.5,0", "0.5,3,9", "0.5,3,0.1,7"])
def test_speculation_that_is_none_says_how_it_is_written(text: str) -> None:
    with pytest.raises(UsageError, match="speculation"):
        parse_speculation(text)


def test_what_is_not_declared_becomes_a_range_and_never_a_point() -> None:
    found = expect(Deployment(model_spec="llama-3.3-70b"), catalog=CATALOG)
    assert found.basis is Basis.FEASIBLE_RANGE
    assert found.confidence is Confidence.LOW
    assert found.expected_tps is None
    assert found.expected_range_tps is not None
    assert found.expected_range_tps[0] < found.expected_range_tps[1]
