"""The shipped rows against each other: arithmetic that must agree, sources, and what is known to be apart."""

import csv
import importlib.util
import re
from pathlib import Path

import pytest

from app.catalog.load import load_catalog
from app.catalog.model import Model
from app.expectation.weights import distinct_experts

CATALOG = load_catalog()
DATA = Path(__file__).parents[3] / "app" / "catalog" / "data"
MODELS = list(CATALOG.models.values())
GEOMETRY_APART = {"google/gemma-4-31B-it", "google/gemma-4-26B-A4B-it"}
"""Their global layers have other heads than their windowed ones; the catalogue has one geometry a model."""
TOTALS_APART = {"google/gemma-4-31B-it", "google/gemma-4-26B-A4B-it", "moonshotai/Kimi-K2-Instruct", "moonshotai/Kimi-K2.5"}
"""Published totals that count a vision tower, or are rounded ("1T")."""


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_catalogue_is_whole() -> None:
    sizes = (len(CATALOG.accelerators), len(CATALOG.models), len(CATALOG.quantizations), len(CATALOG.providers))
    assert sizes == (98, 91, 52, 3)


@pytest.mark.parametrize("name", ["hardware.csv", "models.csv", "quant.csv", "providers.csv"])
def test_every_row_has_a_source_and_an_id_of_its_own(name: str) -> None:
    found = rows(name)
    assert [row for row in found if not row["source"].strip()] == []
    ids = [row.get("model_id") or row["id"] for row in found]
    assert len(set(map(str.lower, ids))) == len(ids)


@pytest.mark.parametrize("model", [m for m in MODELS if m.non_expert is not None], ids=lambda m: m.id)
def test_parameters_add_up(model: Model) -> None:
    """Streamed = non-experts + k experts; total = those + the other experts + the embedding (theory 1.5)."""
    assert model.non_expert is not None
    if model.streamed is not None:
        streamed = model.non_expert + model.experts_per_token * model.per_expert_index
        assert streamed == pytest.approx(model.streamed, rel=0.01)
    if model.total is not None:
        embedding = 0.0 if model.tied else model.head
        total = model.non_expert + embedding + model.experts * model.per_expert_index
        assert total == pytest.approx(model.total, rel=0.035 if model.id in TOTALS_APART else 0.012)


def test_published_totals_are_met() -> None:
    apart = {}
    for row in rows("models.csv"):
        if row["published_total_B"] and row["total_params_B"]:
            error = float(row["total_params_B"]) / float(row["published_total_B"]) - 1
            if abs(error) > 0.015:
                apart[row["model_id"]] = round(error, 3)
    assert set(apart) <= TOTALS_APART, apart


@pytest.mark.parametrize("model", [m for m in MODELS if m.kv_bytes_per_token], ids=lambda m: m.id)
def test_kv_bytes_follow_from_the_geometry(model: Model) -> None:
    """GQA: 2 L n_kv d 2 bytes; MLA: L (rank + rope) 2 bytes (theory 1.6)."""
    if model.mla_rank is not None and model.mla_rope is not None:
        assert model.kv_bytes_per_token == model.layers * (model.mla_rank + model.mla_rope) * 2
    elif model.attention_layers and model.kv_heads and model.head_dim and model.id not in GEOMETRY_APART:
        assert model.kv_bytes_per_token == 2 * model.attention_layers * model.kv_heads * model.head_dim * 2


@pytest.mark.parametrize(
    ("model", "kv_bytes"),
    [
        ("llama-2-7b", 524_288),
        ("llama-3.1-8b", 131_072),
        ("llama-3.3-70b", 327_680),
        ("llama-3.1-405b", 516_096),
        ("qwen3-32b", 262_144),
        ("Qwen/Qwen3-30B-A3B", 98_304),
        ("qwen3-235b-a22b", 192_512),
        ("gpt-oss-120b", 36_864),
        ("deepseek-v3", 70_272),
        ("deepseek-r1", 70_272),
        ("kimi-k2", 70_272),
        ("glm-4.6", 376_832),
        ("minimax-m2", 253_952),
        ("gemma-3-27b", 81_920),
        ("qwen3.8-27b", 65_536),
    ],
)
def test_kv_bytes_per_token_are_those_of_the_theory(model: str, kv_bytes: int) -> None:
    """Theory 1.6, 16 bit."""
    assert CATALOG.model(model).kv_bytes_per_token == kv_bytes


@pytest.mark.parametrize(("model", "window_bytes"), [("gpt-oss-120b", 4.7e6), ("gemma-3-27b", 436e6)])
def test_the_window_part_is_a_constant(model: str, window_bytes: float) -> None:
    assert CATALOG.model(model).kv_constant_bytes == pytest.approx(window_bytes, rel=0.02)


@pytest.mark.parametrize(
    ("model", "experts"),
    [
        ("deepseek-r1", (8, 15.8, 30.5, 57.4, 102, 163, 222)),
        ("Qwen/Qwen3-30B-A3B", (8, 15.5, 29.1, 51.6, 82.4, 112, 126)),
        ("gpt-oss-120b", (4, 7.9, 15.3, 28.7, 51, 82, 111)),
        ("mixtral-8x7b", (2, 3.5, 5.5, 7.2, 7.9, 8, 8)),
        ("llama-4-maverick-17b-128e", (1, 2, 4, 7.8, 15, 28, 51)),
    ],
)
def test_distinct_experts_at_a_batch_are_those_of_the_theory(model: str, experts: tuple[float, ...]) -> None:
    """Theory 1.5: B = 1, 2, 4, 8, 16, 32, 64."""
    found = [distinct_experts(CATALOG.model(model), 2**power) for power in range(7)]
    assert found == [pytest.approx(each, rel=0.015, abs=0.06) for each in experts]


@pytest.mark.parametrize(
    "row", [r for r in rows("quant.csv") if re.fullmatch(r"\d+/\d+", r["block_bytes_per_weights"])], ids=lambda r: r["id"]
)
def test_bits_per_weight_follow_from_the_block_size(row: dict[str, str]) -> None:
    """Bytes of a block x 8 / weights in it (theory 1.8)."""
    size, weights = map(int, row["block_bytes_per_weights"].split("/"))
    assert float(row["bits_per_weight_block"]) == pytest.approx(size * 8 / weights, abs=1e-4)


@pytest.mark.parametrize("row", [r for r in rows("quant.csv") if r["family"] == "GGUF"], ids=lambda r: r["id"])
def test_block_sizes_are_those_of_the_gguf_package_where_it_is_installed(row: dict[str, str]) -> None:
    if importlib.util.find_spec("gguf") is None:
        assert row["source"]
        return
    import gguf

    kind = getattr(gguf.GGMLQuantizationType, row["id"], None)
    if kind is not None:
        weights, size = gguf.GGML_QUANT_SIZES[kind]
        assert float(row["bits_per_weight_block"]) == pytest.approx(size * 8 / weights, abs=1e-4)


def test_a_file_type_is_no_narrower_than_its_narrowest_block() -> None:
    for quantization in CATALOG.quantizations.values():
        if quantization.bits is not None:
            assert 1.5 <= quantization.bits <= 32, quantization.id


def test_crossover_batches_follow_from_compute_and_bandwidth() -> None:
    """F / BW, the batch where 16-bit decoding becomes compute-bound (theory 1.2): A100 153, H100 295, H200 206, MI300X 247."""
    expected = {
        "A100-SXM-80GB": 153,
        "H100-SXM-80GB": 295,
        "H200-SXM-141GB": 206,
        "B200-SXM-180GB": 281,
        "MI300X-192GB": 247,
        "TPU-v5e": 240,
    }
    for row_id, batch in expected.items():
        row = CATALOG.accelerators[row_id]
        assert (row.flops_16 or 0) / row.bandwidth == pytest.approx(batch, rel=0.01)


def test_hardware_that_is_not_confirmed_says_so() -> None:
    low = {row.id for row in CATALOG.accelerators.values() if row.confidence == "low"}
    assert {"GROQ-LP30", "GH200-96GB"} <= low
    assert all(
        any(word in row_id for word in ("VR200", "LP30", "GH200")) or CATALOG.accelerators[row_id].notes for row_id in low
    )


def test_every_provider_default_names_hardware_that_exists() -> None:
    for row in CATALOG.providers.values():
        assert row.hardware is None or CATALOG.hardware_of(row.hardware).by_layers
        assert all(host == host.lower() and "/" not in host for host in row.hosts)
