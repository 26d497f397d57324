"""An expectation in words and as JSON: every figure has its unit, and nothing that is unknown is printed."""

import json

import pytest

from app.catalog.load import load_catalog
from app.expectation.body import SHOWN, expectation_json, explain, rate, size, speed
from app.expectation.expect import Workload, expect
from app.expectation.model import Basis, Confidence, Expectation
from app.targets.deployment import Deployment

CATALOG = load_catalog()
FIELDS = {
    *("model_spec", "hardware", "devices", "quantization", "bits_per_weight", "batch", "context_tokens", "basis"),
    *("weights_bytes", "weights_bytes_per_token", "kv_bytes_per_token", "memory_needed_bytes", "memory_bytes", "fits"),
    *("ceiling_tps", "expected_tps", "expected_range_tps", "red_below_tps", "amber_below_tps", "tuned_above_tps"),
    *("ttft_floor_s", "prefill_s", "layer_us", "confidence", "assumptions"),
}


def of(*, observed_tps: float | None = None, context: int = 2048, **said: object) -> Expectation:
    deployment = Deployment(**{"model_spec": "gpt-oss-120b", **said})  # type: ignore[arg-type]
    return expect(deployment, catalog=CATALOG, workload=Workload(context_tokens=context), observed_tps=observed_tps)


def test_json_has_every_field_of_the_interface_and_only_json_s_types() -> None:
    found = expectation_json(of(hardware="H100-SXM-80GB", devices=1, observed_tps=100))
    assert set(found) >= FIELDS
    assert json.loads(json.dumps(found)) == found
    assert found["feasible"]["observed_tps"] == 100


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        (
            {"hardware": "H100-SXM-80GB", "devices": 1},
            [
                "openai/gpt-oss-120b, MXFP4 (4.25 bit), on 1 x H100-SXM-80GB; context 2,048 tokens",
                "  weights      65.2 GB resident            5 GB read per token",
                "  KV cache     80.2 MB a stream            39.2 kB per token of context",
                "  memory       71.8 GB needed              of 80 GB: fits",
                "  ceiling      659 tokens/s                no honest deployment passes it without speculation",
                "  expected     182 tokens/s                5.5 ms per token",
                "  normal       109 tokens/s to 227 tokens/s",
                "  critical     below 72.8 tokens/s",
                "  warning      below 109 tokens/s",
                "  tuned        above 227 tokens/s          or speculative",
                "  confidence   high",
            ],
        ),
        ({"model_spec": "llama-3.3-70b", "hardware": "H100-SXM-80GB", "devices": 1}, ["of 80 GB: DOES NOT FIT"]),
        (
            {"hardware": "GROQ-LPU-V1"},
            ["on GROQ-LPU-V1;", "46 µs a layer", "the number of devices is not said", "  confidence   medium"],
        ),
        ({"hardware": "H100-SXM-80GB"}, ["any format, on H100-SXM-80GB, any number;", "the range over"]),
        ({}, ["on any machine that can hold it;", "  confidence   low"]),
        (
            {"hardware": "H100-SXM-80GB", "devices": 1, "batch": 4},
            ["4 streams share a step", "by each stream", "4 streams together"],
        ),
    ],
)
def test_words_say_what_is_known(said: dict[str, object], lines: list[str]) -> None:
    text = explain(of(**said))
    assert [line for line in lines if line not in text] == []
    assert "None" not in text
    assert text.index("Assumptions") < text.index("  - ")


def test_no_context_has_no_cache_per_token() -> None:
    assert "per token of context" not in explain(of(hardware="H100-SXM-80GB", devices=1, context=0))


def test_an_observed_speed_is_answered_by_a_set_with_its_bounds() -> None:
    text = explain(of(observed_tps=683))
    assert "Observed 683 tokens/s" in text
    assert "  bandwidth    at least" in text
    assert "is plausible without speculation" in text
    assert "16 bit would need" in text
    assert "a set, not an estimate" in text
    assert "more accelerators (--json lists all)" in text
    assert text.count(" x") > SHOWN
    assert "GROQ-LPU-V1                any number" in text


def test_few_accelerators_are_all_shown() -> None:
    text = explain(of(hardware="H100-SXM-80GB", observed_tps=150))
    assert "more accelerators" not in text
    assert "    H100-SXM-80GB              1 x, 2 x, 4 x, 8 x" in text


def test_a_speed_that_needs_speculation_says_so() -> None:
    text = explain(of(hardware="H100-SXM-80GB", observed_tps=500))
    assert "and only with speculation" in text
    assert "    H100-SXM-80GB              with speculation" in text


def test_a_speed_that_nothing_explains_says_so() -> None:
    text = explain(of(hardware="H100-SXM-80GB", observed_tps=1e5))
    assert "no machine of the catalogue explains it, with or without speculation" in text
    assert "precision    up to" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(6.5e10, "65 GB"), (1.5e8, "0.15 GB"), (8.02e7, "80.2 MB"), (39_168, "39.2 kB"), (12, "12 B")],
)
def test_sizes_are_readable(value: float, text: str) -> None:
    assert size(value) == text


def test_rates_and_speeds_are_readable() -> None:
    assert (rate(3.35e12), rate(4.5e11), speed(17_761.0), speed(24.05)) == (
        "3.35 TB/s",
        "450 GB/s",
        "17,761 tokens/s",
        "24.1 tokens/s",
    )


def test_what_is_not_known_is_not_printed() -> None:
    text = explain(Expectation(basis=Basis.BASELINE, confidence=Confidence.LOW, ttft_s=(0.1, 0.2), assumptions=("none",)))
    assert [line.split()[0] for line in text.splitlines()[1:] if line] == ["first", "confidence", "Assumptions", "-"]
