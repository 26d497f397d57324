"""The laws against the theory, section by section, and what must hold for every machine."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.catalog.load import load_catalog
from app.catalog.model import Accelerator, Model
from app.errors import UsageError
from app.expectation.expect import Workload, expect, machine_of, native_format
from app.expectation.laws import (
    Machine,
    ceiling_tps,
    expected_s,
    flops_of,
    latency,
    layer_law,
    prefill_flops,
    prefill_s,
    stack_of,
    ttft_floor_s,
    ttft_s,
)
from app.expectation.model import Basis, Confidence, Expectation
from app.expectation.speculation import Speculation, parse_speculation
from app.expectation.weights import cache_bytes, distinct_experts, resident_bytes, step_bytes, streamed, widths
from app.targets.deployment import Deployment

CATALOG = load_catalog()
DENSE, EXPERTS, MLA, WINDOW, LINEAR = "llama-3.3-70b", "gpt-oss-120b", "deepseek-r1", "gemma-3-27b", "qwen3.8-27b"
GPUS = [a.id for a in CATALOG.accelerators.values() if a.kind == "dc-gpu" and a.confidence == "high"]
FORMATS = ["BF16", "FP8", "GPTQ-INT4", "NVFP4", "Q4_K_M"]
SLOW = settings(deadline=None, max_examples=60)


def machine(model: str = DENSE, hardware: str = "H100-SXM-80GB", *, context: int = 2048, **more: object) -> Machine:
    asked = Deployment(**{"devices": 1, "quantization": "BF16", **more})  # type: ignore[arg-type]
    found, _ = machine_of(asked, CATALOG.model(model), CATALOG.hardware_of(hardware), CATALOG, Workload(context_tokens=context))
    return found


def of(
    model: str, hardware: str | None, devices: int | None = 1, *, work: Workload | None = None, **more: object
) -> Expectation:
    return expect(Deployment(model_spec=model, hardware=hardware, devices=devices, **more), catalog=CATALOG, workload=work)  # type: ignore[arg-type]


# 1.2 decode roofline


def test_1_2_the_ceiling_is_bandwidth_over_bytes_of_a_step() -> None:
    m = machine(devices=2, batch=3)
    step = 68.98e9  # noqa: F841 - the size to have in mind
    assert ceiling_tps(m) == pytest.approx(2 * 3350e9 / (step_bytes(m.model, m.widths, batch=3) + 3 * m.cache))


def test_1_2_worked_70b_on_h100_at_no_context() -> None:
    ceilings = [
        of(DENSE, "H100-SXM-80GB", n, quantization=q, work=Workload(context_tokens=0)).ceiling_tps
        for n, q in ((1, "BF16"), (2, "BF16"), (1, "FP8"), (1, "INT4"))
    ]
    assert ceilings[:2] == [pytest.approx(24.1, abs=0.05), pytest.approx(48.2, abs=0.05)]
    assert ceilings[2] == pytest.approx(48.2, rel=0.02)
    assert ceilings[3] == pytest.approx(89, rel=0.005)


def test_1_2_a_large_batch_is_bound_by_compute() -> None:
    """t_c = 2 P B / (N F); above the crossover of about 295 the weights' read no longer matters."""
    m = machine("llama-3.1-8b", context=0, batch=1000)
    assert ceiling_tps(m) == pytest.approx(989e12 / (2 * streamed(m.model) * 1000), rel=0.01)
    below = machine("llama-3.1-8b", context=0, batch=200)
    assert ceiling_tps(below) == pytest.approx(3350e9 / below.step)


# 1.3 expected speed


def test_1_3_expected_time_is_bytes_over_eta_and_latency_per_layer() -> None:
    m = machine(devices=8)
    assert latency(m) == (0.80, 60e-6, 5.5e-6)
    assert expected_s(m) == pytest.approx(m.step / (0.8 * 8 * 3350e9) + 80 * (60e-6 + 2 * 5.5e-6))


def test_1_3_experts_take_100_us_a_layer_and_one_device_no_all_reduce() -> None:
    assert latency(machine(EXPERTS)) == (0.80, 100e-6, 0.0)


def test_1_3_compute_counts_at_its_utilisation_when_it_is_what_limits() -> None:
    m = machine("llama-3.1-8b", context=0, batch=2000)
    assert expected_s(m) == pytest.approx(m.compute_s / 0.65 + 32 * 60e-6)


@pytest.mark.parametrize(
    ("stack", "hardware", "known"),
    [
        ("vLLM 0.6.3", "A100-SXM-80GB", "vllm-0.6"),
        ("ollama", "M4-PRO", "llama.cpp-metal"),
        ("llama.cpp", "RX-7900XT-20GB", "llama.cpp-rocm"),
        ("llamacpp", "RTX-4090-24GB", "llama.cpp"),
        ("TRT-LLM", "H100-SXM-80GB", "tensorrt-llm"),
        ("secret sauce", "H100-SXM-80GB", None),
        (None, "H100-SXM-80GB", None),
    ],
)
def test_1_3_a_stack_is_known_by_its_names_on_its_hardware(stack: str | None, hardware: str, known: str | None) -> None:
    assert stack_of(stack, CATALOG.hardware_of(hardware)) == known


def test_an_unknown_stack_is_said_to_be_unknown() -> None:
    found = of(DENSE, "H100-SXM-80GB", 4, stack="secret sauce")
    assert any("secret sauce is not known: a general engine" in each for each in found.assumptions)
    assert found.expected_tps == of(DENSE, "H100-SXM-80GB", 4).expected_tps


@pytest.mark.parametrize(("quantization", "tflops"), [("FP8", 1979), ("INT8", 1979), ("BF16", 989), ("NVFP4", 989)])
def test_1_3a_arithmetic_is_that_of_the_format_where_the_device_has_it(quantization: str, tflops: float) -> None:
    found = flops_of(CATALOG.hardware_of("H100-SXM-80GB"), CATALOG.quantization(quantization))
    assert found == pytest.approx(tflops * 1e12, rel=0.01)


# 1.5 experts


def test_1_5_two_widths_gpt_oss_reads_5_gb_a_token() -> None:
    found = of(EXPERTS, "H100-SXM-80GB")
    assert found.weights_bytes_per_token == pytest.approx(5.0e9, abs=0.01e9)
    assert (found.quantization, found.bits_per_weight) == ("MXFP4", 4.25)


def test_1_5_files_of_llama_cpp_keep_the_rest_at_8_5_bit() -> None:
    gguf, native = of(EXPERTS, "GB10-128GB", stack="llama.cpp"), of(EXPERTS, "GB10-128GB")
    assert gguf.quantization == "MXFP4-GGUF"
    assert gguf.weights_bytes_per_token == pytest.approx(3.5e9, rel=0.02)
    assert (gguf.ceiling_tps or 0) > (native.ceiling_tps or 0)
    assert any("8.5 bit" in each for each in gguf.assumptions)


def test_1_5_distinct_experts_start_at_k_and_end_at_all() -> None:
    model = CATALOG.model(MLA)
    assert distinct_experts(model, 1) == pytest.approx(8)
    assert distinct_experts(model, 1e6) == pytest.approx(256)
    assert distinct_experts(CATALOG.model(DENSE), 64) == 0.0


def test_1_5_a_batch_of_experts_is_called_an_estimate() -> None:
    assert any("uniform routing (an estimate)" in each for each in of(EXPERTS, "H100-SXM-80GB", batch=8).assumptions)
    assert any(each == "8 streams share a step" for each in of(DENSE, "H100-SXM-80GB", 4, batch=8).assumptions)


# 1.6 KV cache


def test_1_6_cache_grows_with_context_and_halves_with_its_bits() -> None:
    model = CATALOG.model("llama-3.1-8b")
    assert cache_bytes(model, 2048) == 131_072 * 2048
    assert cache_bytes(model, 2048, bits=8) == 131_072 * 1024
    assert cache_bytes(model, 0) == 0


def test_1_6_windowed_layers_stop_growing_at_their_window() -> None:
    model = CATALOG.model(WINDOW)
    assert model.window is not None
    half, full, far = (cache_bytes(model, model.window * part) for part in (0.5, 1, 100))
    assert half == pytest.approx(full / 2)
    assert far - full == pytest.approx(model.kv_bytes_per_token * model.window * 99)


def test_1_6_linear_attention_has_a_small_cache() -> None:
    """Qwen3.8-27B: 65,536 bytes a token, a quarter of a dense model of its size."""
    assert cache_bytes(CATALOG.model(LINEAR), 1) - CATALOG.model(LINEAR).kv_constant_bytes == pytest.approx(65_536)


@pytest.mark.parametrize(
    ("model", "tokens"), [("llama-3.1-8b", 115e3), (DENSE, 424e3), ("Qwen/Qwen3-30B-A3B", 62e3), ("glm-4.6", 174e3)]
)
def test_1_6_context_at_which_the_cache_weighs_as_much_as_the_weights(model: str, tokens: float) -> None:
    row = CATALOG.model(model)
    weights = step_bytes(row, widths(row, CATALOG.quantization("BF16")))
    assert (weights - row.kv_constant_bytes) / row.kv_bytes_per_token == pytest.approx(tokens, rel=0.02)


# 1.7 parallelism


def test_1_7_a_pipeline_gives_one_stream_one_device() -> None:
    one, four = machine(parallelism="tp"), machine(devices=4, parallelism="pp")
    assert ceiling_tps(four) == ceiling_tps(one)
    assert expected_s(four) == expected_s(one)
    found = of(DENSE, "H100-SXM-80GB", 4, parallelism="pp")
    assert found.memory_bytes == 320e9
    assert any("pipeline parallel" in each for each in found.assumptions)


def test_1_7_tensor_parallel_pays_two_all_reduces_a_layer() -> None:
    for hardware, reduce in (("A100-SXM-80GB", 7.0e-6), ("MI300X-192GB", 8.0e-6), ("L40S-48GB", 6e-6)):
        assert latency(machine(hardware=hardware, devices=2))[2] == reduce


# 1.8 quantisation


@pytest.mark.parametrize(
    ("quantization", "gb"), [("BF16", 15.0), ("INT4", 4.7), ("FP8", 8.0), ("Q4_K_M", 4.55), ("INT4-G32", 5.4), ("Q8_0", 7.97)]
)
def test_1_8_an_8b_model_streams_so_many_gigabytes(quantization: str, gb: float) -> None:
    """16-bit heads: an "INT4" 8B streams 4.7 GB a token, not 3.9; file types are whole-model mixtures."""
    found = of("llama-3.1-8b", "H100-SXM-80GB", quantization=quantization)
    assert found.weights_bytes_per_token == pytest.approx(gb * 1e9, rel=0.02)


def test_bits_replace_the_quantized_width_and_leave_wide_parts_wide() -> None:
    model = CATALOG.model("llama-3.1-8b")
    w = widths(model, CATALOG.quantization("GPTQ-INT4"), bits=3.0)
    assert (w.expert, w.rest, w.head, w.quantized) == (3.0, 3.0, 16.0, 3.0)
    w = widths(CATALOG.model(EXPERTS), CATALOG.quantization("MXFP4"), bits=3.0)
    assert (w.expert, w.rest, w.head) == (3.0, 16.0, 16.0)


def test_a_format_without_a_width_asks_for_it() -> None:
    with pytest.raises(UsageError, match="--bits"):
        of(DENSE, "H100-SXM-80GB", quantization="EXL2")
    with pytest.raises(ValueError, match="no fixed width"):
        widths(CATALOG.model(DENSE), CATALOG.quantization("EXL2"))
    assert of(DENSE, "H100-SXM-80GB", quantization="EXL2", bits=4.0).bits_per_weight == 4.0


def test_a_format_of_the_cache_is_no_format_of_weights() -> None:
    with pytest.raises(UsageError, match="kv-bits"):
        of(DENSE, "H100-SXM-80GB", quantization="KV-FP8")


@pytest.mark.parametrize(
    ("model", "native"), [(EXPERTS, "MXFP4"), (MLA, "FP8"), (DENSE, "BF16"), ("llama-2-7b", "FP16"), ("kimi-k2.5", "GPTQ-INT4")]
)
def test_the_native_format_is_what_a_model_is_published_in(model: str, native: str) -> None:
    assert native_format(CATALOG.model(model), CATALOG).id == native


def test_a_native_int4_of_experts_leaves_the_rest_wide() -> None:
    native, whole = of("kimi-k2.5", "H200-SXM-141GB", 8), of("kimi-k2.5", "H200-SXM-141GB", 8, quantization="INT4")
    assert (native.weights_bytes or 0) > (whole.weights_bytes or 0)


# 1.9 machines judged by layers


@pytest.mark.parametrize(
    ("hardware", "model", "us", "layers"),
    [
        ("GROQ-LPU-V1", EXPERTS, (36, 46, 65), 36),
        ("CEREBRAS-WSE-3", LINEAR, (8, 9, 17), 64),
        ("SAMBANOVA-SN40L", DENSE, (27, 40, 83), 80),
    ],
)
def test_1_9_layers_rule_and_there_is_no_ceiling(hardware: str, model: str, us: tuple[int, int, int], layers: int) -> None:
    found = of(model, hardware, None)
    low, middle, high = us
    assert (found.basis, found.ceiling_tps, found.layer_us) == (Basis.LAYER_LAW, None, middle)
    assert CATALOG.model(model).layers == layers
    assert found.expected_tps == pytest.approx(1e6 / (layers * middle))
    assert found.expected_range_tps == (pytest.approx(1e6 / (layers * high)), pytest.approx(1e6 / (layers * low)))
    assert found.confidence is Confidence.MEDIUM
    assert found.fits is None


def test_1_9_speculation_on_widens_the_range_of_layers_and_a_known_one_moves_it() -> None:
    plain, on = of(EXPERTS, "GROQ-LPU-V1", None), of(EXPERTS, "GROQ-LPU-V1", None, speculation="on")
    known = of(EXPERTS, "GROQ-LPU-V1", 576, speculation="0.8,3,0.1")
    assert plain.expected_range_tps is not None
    assert on.expected_range_tps == (plain.expected_range_tps[0], pytest.approx(7 * plain.expected_range_tps[1]))
    assert known.expected_tps == pytest.approx((plain.expected_tps or 0) * 2.952 / 1.3)
    assert known.fits is True


def test_1_9_seventy_gigabytes_need_305_chips() -> None:
    """70 GB at 8 bit, 230 MB a chip."""
    assert of("llama-2-70b", "GROQ-LPU-V1", 304, quantization="INT8").fits is False
    assert 70e9 / CATALOG.hardware_of("GROQ-LPU-V1").memory_bytes == pytest.approx(305, abs=1)


def test_a_vendor_without_a_law_of_its_own_takes_that_of_groq() -> None:
    unheard = replace(CATALOG.hardware_of("GROQ-LPU-V1"), id="X", vendor="X")
    assert layer_law(unheard) == (36.0, 46.0, 65.0)


def test_unconfirmed_sram_machines_never_flag() -> None:
    assert of(EXPERTS, "GROQ-LP30", None).confidence is Confidence.LOW


# 1.10 prefill


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("llama-3.1-8b", 53e3),
        (DENSE, 104e3),
        ("llama-3.1-405b", 195e3),
        ("qwen3-32b", 60e3),
        ("qwen3-235b-a22b", 27e3),
        (MLA, 24e3),
        ("Qwen/Qwen3-30B-A3B", 14e3),
        (EXPERTS, 62e3),
    ],
)
def test_1_10_the_quadratic_term_equals_the_linear_one_at(model: str, tokens: float) -> None:
    row = CATALOG.model(model)
    linear = 2 * (streamed(row) - row.head)
    quadratic = prefill_flops(row, tokens) - linear * tokens - 2 * row.head
    assert quadratic == pytest.approx(linear * tokens, rel=0.03)


def test_1_10_attention_is_a_small_share_of_an_ordinary_prompt() -> None:
    row = CATALOG.model(DENSE)
    linear = 2 * (streamed(row) - row.head) * 2048 + 2 * row.head
    assert 1 - linear / prefill_flops(row, 2048) == pytest.approx(0.02, abs=0.005)


def test_1_10_a_short_prompt_costs_the_read_of_the_weights() -> None:
    m = machine("llama-3.1-8b")
    read = step_bytes(m.model, m.widths) / 3350e9
    assert prefill_s(m, 1)[0] == pytest.approx(read)
    assert prefill_s(m, 1)[1] == pytest.approx(read / 0.8)
    assert ttft_floor_s(m, 1) == pytest.approx(read)


def test_1_10_a_long_prompt_costs_its_arithmetic_at_the_mfu_interval() -> None:
    m = machine("llama-3.1-8b")
    peak = prefill_flops(m.model, 8192) / 989.4e12
    assert prefill_s(m, 8192) == (pytest.approx(peak / 0.65, rel=0.001), pytest.approx(peak / 0.2, rel=0.001))
    assert ttft_floor_s(m, 8192) == pytest.approx(peak, rel=0.001)


def test_1_10_a_first_token_is_prefill_and_at_most_one_step_and_the_network_where_it_was_measured() -> None:
    m = machine("llama-3.1-8b")
    low, high = prefill_s(m, 512)
    assert ttft_s(m, 512) == (low, high + expected_s(m))
    quiet = of("llama-3.1-8b", "H100-SXM-80GB")
    far = of("llama-3.1-8b", "H100-SXM-80GB", work=Workload(network_s=0.08))
    assert quiet.ttft_s is not None
    assert far.ttft_s == (pytest.approx(quiet.ttft_s[0] + 0.08), pytest.approx(quiet.ttft_s[1] + 0.08))
    assert any("80 ms of network as measured" in each for each in far.assumptions)


def test_a_device_without_known_arithmetic_is_bound_by_its_bandwidth() -> None:
    bare = replace(CATALOG.hardware_of("H100-SXM-80GB"), flops_16=None, flops_fp8=None, flops_int8=None, flops_fp4=None)
    m = replace(machine("llama-3.1-8b"), hardware=bare)
    read = step_bytes(m.model, m.widths) / 3350e9
    assert (m.flops, m.flops_at_most, m.compute_s) == (None, None, 0.0)
    assert prefill_s(m, 4096) == (pytest.approx(read), pytest.approx(read / 0.8))
    assert ttft_floor_s(m, 4096) == pytest.approx(read)


def test_geforce_cards_have_a_faster_peak_than_is_listed() -> None:
    card, rack = machine("llama-3.1-8b", "RTX-4090-24GB"), machine("llama-3.1-8b")
    assert card.flops_at_most == 2 * (card.flops or 0)
    assert rack.flops_at_most == rack.flops


# 1.11 speculation


@given(alpha=st.floats(0, 1), gamma=st.integers(1, 16), cost=st.floats(0, 1))
def test_1_11_tokens_a_step_lie_between_one_and_the_draft_and_one(alpha: float, gamma: int, cost: float) -> None:
    found = Speculation(alpha=alpha, gamma=gamma, cost=cost)
    assert 1 - 1e-9 <= found.tokens_per_step <= gamma + 1 + 1e-9
    assert found.speedup == pytest.approx(found.tokens_per_step / (gamma * cost + 1))
    assert found.tokens_per_step == pytest.approx(sum(alpha**i for i in range(gamma + 1)))


def test_1_11_speculation_of_unknown_strength_is_believed_3_5_tokens_a_step() -> None:
    off, on = of(DENSE, "H100-SXM-80GB", 4, speculation="off"), of(DENSE, "H100-SXM-80GB", 4, speculation="on")
    assert on.ceiling_tps == pytest.approx(3.5 * (off.ceiling_tps or 0))
    assert on.expected_tps == off.expected_tps
    assert on.expected_range_tps == (
        pytest.approx(0.6 * (off.expected_tps or 0)),
        pytest.approx(1.25 * 3.5 * (off.expected_tps or 0)),
    )
    assert any("up to 3.5 tokens a step" in each for each in on.assumptions)
    assert not any("speculation" in each for each in off.assumptions)


@pytest.mark.parametrize("text", ["unknown", "off", "ON", " none ", ""])
def test_words_are_no_numbers(text: str) -> None:
    assert parse_speculation(text) is None


def test_a_draft_that_is_always_right_gives_all_its_tokens() -> None:
    assert Speculation(alpha=1.0, gamma=4).tokens_per_step == 5.0
    assert parse_speculation("0.7, 3") == Speculation(alpha=0.7, gamma=3, cost=0.1)


# memory


@pytest.mark.parametrize(
    ("model", "hardware", "devices", "quantization", "fits"),
    [
        (DENSE, "H100-SXM-80GB", 1, "FP16", False),
        (DENSE, "H100-SXM-80GB", 2, "FP16", True),
        (MLA, "H100-SXM-80GB", 8, "FP8", False),
        (MLA, "M2-ULTRA", 2, "Q4_K_M", False),
        ("qwen2.5-coder-32b", "RTX-4090-24GB", 1, "Q4_K_M", True),
    ],
)
def test_2_what_fits_and_what_does_not(model: str, hardware: str, devices: int, quantization: str, fits: bool) -> None:  # noqa: FBT001 - a table
    found = of(model, hardware, devices, quantization=quantization)
    if (model, devices) == (DENSE, 2):
        assert found.memory_needed_bytes == pytest.approx(1.1 * (found.weights_bytes or 0) + (found.kv_bytes_per_token or 0))
        assert found.weights_bytes == pytest.approx(141e9, rel=0.01)
    else:
        assert found.fits is fits
    assert any("impossible as declared" in each for each in found.assumptions) is (not fits)


def test_a_model_that_only_just_fits_is_not_called_impossible() -> None:
    found = of("Qwen/Qwen3-32B", "RX-7900XT-20GB", quantization="Q4_K_M", work=Workload(context_tokens=0))
    assert found.fits is False
    assert any("does not fit with a tenth to spare" in each for each in found.assumptions)
    assert not any("impossible" in each for each in found.assumptions)


def test_2_two_h100_of_80_gb_reach_about_31_of_a_ceiling_of_48() -> None:
    found = of(DENSE, "H100-SXM-80GB", 2, quantization="FP16", work=Workload(context_tokens=0))
    assert (round(found.ceiling_tps or 0), round(found.expected_tps or 0)) == (48, 32)


# low confidence, unknown geometry, nonsense


def test_unconfirmed_hardware_never_drives_a_flag() -> None:
    low = next(a for a in CATALOG.accelerators.values() if a.confidence == "low" and not a.by_layers)
    found = of("llama-3.1-8b", low.id)
    assert found.confidence is Confidence.LOW
    assert any(f"the figures of {low.id} are not confirmed" in each for each in found.assumptions)
    assert of("llama-3.1-8b", low.id, None).confidence is Confidence.LOW


def test_a_model_of_unknown_geometry_counts_its_active_parameters_and_never_flags() -> None:
    model = next(m for m in CATALOG.models.values() if m.streamed is None)
    found = of(model.id, "B200-SXM-180GB", 8)
    assert found.confidence is Confidence.LOW
    assert streamed(model) == model.active - model.head
    assert any("geometry" in each for each in found.assumptions)
    assert any("KV cache of this model is not known" in each for each in found.assumptions) is (model.kv_bytes_per_token == 0)
    w = widths(model, CATALOG.quantization("FP8"))
    assert resident_bytes(model, w) > 0
    assert resident_bytes(replace(model, total=None), w) > 0
    assert resident_bytes(replace(model, tied=True), w) < resident_bytes(model, w)


@pytest.mark.parametrize("field", ["devices", "batch", "bits", "kv_bits"])
def test_what_must_be_positive_is_refused_by_name(field: str) -> None:
    with pytest.raises(UsageError, match=f"{field} must be positive"):
        expect(Deployment(model_spec=DENSE, hardware="H100-SXM-80GB", **{field: 0}), catalog=CATALOG)  # type: ignore[arg-type]


def test_no_model_no_expectation() -> None:
    with pytest.raises(UsageError, match="model_spec"):
        expect(Deployment(hardware="H100-SXM-80GB"), catalog=CATALOG)


def test_what_is_unknown_is_named_in_the_range() -> None:
    found = of(DENSE, "H100-SXM-80GB", None)
    assert found.assumptions[0].startswith("devices unknown, quantization unknown: the range over")
    assert (found.hardware, found.confidence) == ("H100-SXM-80GB", Confidence.MEDIUM)
    told = of(DENSE, "H100-SXM-80GB", None, quantization="fp8", speculation="off")
    assert told.quantization == "FP8"
    assert told.assumptions[0].startswith("devices unknown: the range over")


# what must hold everywhere


def stronger(hardware: Accelerator, factor: float) -> Accelerator:
    return replace(hardware, bandwidth=hardware.bandwidth * factor)


machines = st.builds(
    machine,
    st.sampled_from([DENSE, EXPERTS, MLA, WINDOW, LINEAR]),
    st.sampled_from(GPUS),
    context=st.integers(0, 200_000),
    devices=st.sampled_from([1, 2, 4, 8]),
    quantization=st.sampled_from(FORMATS),
    batch=st.integers(1, 256),
    stack=st.sampled_from([None, "vllm", "vllm-0.6", "tensorrt-llm"]),
)


@SLOW
@given(m=machines, factor=st.floats(1, 10))
def test_more_bandwidth_is_never_slower(m: Machine, factor: float) -> None:
    fast = replace(m, hardware=stronger(m.hardware, factor))
    assert ceiling_tps(fast) >= ceiling_tps(m)
    assert expected_s(fast) <= expected_s(m)
    assert prefill_s(fast, 512)[1] <= prefill_s(m, 512)[1]


@SLOW
@given(m=machines, bits=st.floats(1, 16), more=st.floats(1, 4))
def test_more_bits_are_never_faster_and_never_smaller(m: Machine, bits: float, more: float) -> None:
    narrow, wide = (replace(m, widths=widths(m.model, m.format, bits=b)) for b in (bits, bits * more))
    assert ceiling_tps(wide) <= ceiling_tps(narrow)
    assert expected_s(wide) >= expected_s(narrow)
    assert resident_bytes(m.model, wide.widths) >= resident_bytes(m.model, narrow.widths)


@SLOW
@given(m=machines, longer=st.integers(0, 100_000), streams=st.integers(0, 100))
def test_more_context_and_more_streams_never_speed_a_stream_up(m: Machine, longer: int, streams: int) -> None:
    assert expected_s(replace(m, context=m.context + longer)) >= expected_s(m)
    crowded = replace(m, batch=m.batch + streams)
    assert expected_s(crowded) >= expected_s(m) * (1 - 1e-12)
    assert crowded.batch / expected_s(crowded) >= m.batch / expected_s(m) * (1 - 1e-9)


@SLOW
@given(m=machines)
def test_the_expected_speed_lies_under_the_ceiling(m: Machine) -> None:
    assert 1 / expected_s(m) < ceiling_tps(m)


@SLOW
@given(m=machines)
def test_a_pipeline_is_never_faster_than_tensor_parallel_at_the_ceiling(m: Machine) -> None:
    assert ceiling_tps(replace(m, pipeline=True)) <= ceiling_tps(m)


@SLOW
@given(m=machines, tokens=st.integers(1, 100_000), more=st.integers(0, 100_000))
def test_prefill_is_ordered_and_grows_with_the_prompt(m: Machine, tokens: int, more: int) -> None:
    low, high = prefill_s(m, tokens)
    assert ttft_floor_s(m, tokens) <= low <= high <= ttft_s(m, tokens)[1]
    assert all(longer >= shorter for longer, shorter in zip(prefill_s(m, tokens + more), (low, high), strict=True))


@SLOW
@given(
    model=st.sampled_from(sorted(CATALOG.models)),
    hardware=st.sampled_from(sorted(CATALOG.accelerators)),
    devices=st.sampled_from([None, 1, 8, 64]),
    quantization=st.sampled_from([None, *FORMATS]),
    speculation=st.sampled_from(["unknown", "off", "on", "0.7,3"]),
)
def test_every_model_on_every_machine_has_an_answer_in_order(
    model: str, hardware: str, devices: int | None, quantization: str | None, speculation: str
) -> None:
    try:
        found = of(model, hardware, devices, quantization=quantization, speculation=speculation)
    except UsageError as error:
        assert "can hold" in str(error)  # noqa: PT017 - too large for anything of the kind
        return
    assert found.expected_range_tps is not None
    assert 0 < found.expected_range_tps[0] <= found.expected_range_tps[1]
    if found.expected_tps is not None:
        assert (found.red_below_tps, found.amber_below_tps) == (
            pytest.approx(0.4 * found.expected_tps),
            pytest.approx(0.6 * found.expected_tps),
        )
        assert found.ceiling_tps is None or found.expected_tps < found.ceiling_tps
    assert found.assumptions


def test_names_of_fixtures_are_models() -> None:
    kinds: list[Model] = [CATALOG.model(name) for name in (DENSE, EXPERTS, MLA, WINDOW, LINEAR)]
    assert [bool(m.experts) for m in kinds] == [False, True, True, False, False]
