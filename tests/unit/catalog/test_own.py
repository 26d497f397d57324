"""Rows of one's own: a file or a folder, checked when they are read, winning over shipped ones."""

from pathlib import Path

import pytest

from app.catalog.load import load_catalog
from app.errors import ConfigError, NotFoundError
from app.expectation.expect import expect
from app.expectation.model import Confidence
from app.targets.deployment import Deployment

OWN = """
hardware:
  - {id: LAB-X1, name: Lab X1, vendor: Lab, class: dc-gpu, memory_GB: 96, bandwidth_GBps: 4000, bf16_dense_TFLOPS: 500, confidence: low}
models:
  - {model_id: lab/tiny-7b, family: tiny, active_params_B: 7.2, streamed_params_B_batch1: 7.0, non_expert_params_B: 7.0, n_layers: 32,
     hidden_size: 4096, vocab_size: 32000, native_dtype: bf16, kv_bytes_per_token_16bit: 131072, aliases_other: "lab: tiny|lab-tiny"}
quantizations:
  - {id: LAB-5BIT, name: five bits, family: LAB, bits_per_weight_block: 5.25, applies_to: weights}
"""


def test_a_file_adds_hardware_models_and_formats(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    catalog = load_catalog(tmp_path / "own.yaml")
    assert catalog.hardware_of("lab x1").bandwidth == 4e12
    assert catalog.model("lab-tiny").id == "lab/tiny-7b"
    assert catalog.quantization("lab-5bit").bits == 5.25
    assert catalog.model("gpt-oss-120b").id == "openai/gpt-oss-120b"
    found = expect(Deployment(model_spec="tiny", hardware="lab-x1", devices=1, quantization="lab-5bit"), catalog=catalog)
    assert found.weights_bytes_per_token == pytest.approx((7e9 - 131.072e6) * 5.25 / 8 + 131.072e6 * 2)
    assert found.confidence is Confidence.LOW
    assert any("never a reason for a flag" in each for each in found.assumptions)


def test_a_folder_of_csv_files_wins_over_shipped_rows(tmp_path: Path) -> None:
    (tmp_path / "hardware.csv").write_text(
        "id,name,vendor,class,memory_GB,bandwidth_GBps,confidence\nH100-SXM-80GB,H100,NVIDIA,dc-gpu,80,3000,medium\n"
    )
    found = load_catalog(tmp_path).hardware_of("H100-SXM-80GB")
    assert (found.bandwidth, found.flops_16, found.confidence) == (3e12, None, "medium")


def test_json_is_yaml_too(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text(
        '{"quantizations": [{"id": "Q", "name": "q", "family": "F", "bits_per_weight_block": 3, "applies_to": "weights", "notes": null}]}'
    )
    assert load_catalog(tmp_path / "own.json").quantization("Q").bits == 3.0


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("H,h,Lab,dc-gpu,80,fast,high", "bandwidth_GBps is 'fast', which is no number"),
        ("H,h,Lab,dc-gpu,80,,high", "bandwidth_GBps must be a positive number"),
        ("H,h,Lab,dc-gpu,80,nan,high", "bandwidth_GBps must be a positive number"),
        ("H,h,Lab,dc-gpu,-1,100,high", "memory_GB must be a positive number"),
        ("H,h,Lab,dc-gpu,80,100,sure", "write high, medium or low"),
        ("H,h,Lab,toaster,80,100,high", "class is 'toaster'"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_file_and_line(tmp_path: Path, row: str, why: str) -> None:
    (tmp_path / "hardware.csv").write_text(f"id,name,vendor,class,memory_GB,bandwidth_GBps,confidence\n{row}\n")
    with pytest.raises(ConfigError, match=why) as caught:
        load_catalog(tmp_path)
    assert (caught.value.problems[0].file, caught.value.problems[0].line) == (str(tmp_path / "hardware.csv"), 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hardware: [{id: X}]", "confidence is missing"),
        ("hardware: 5", "must be a list of rows"),
        ("hardware: [5]", "must be a list of rows"),
        ("gpus: []", "must hold lists named hardware, models, quantizations"),
        ("- a", "must hold lists named"),
        ("a: [", "neither YAML nor JSON"),
    ],
)
def test_a_file_that_is_built_wrong_says_how_it_should_be(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(ConfigError, match=why):
        load_catalog(tmp_path / "own.yaml")


def test_a_file_that_is_not_there_or_no_text_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_catalog(tmp_path / "none.yaml")
    (tmp_path / "raw.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_catalog(tmp_path / "raw.yaml")


def test_shipped_rows_do_not_know_one_s_own() -> None:
    with pytest.raises(NotFoundError):
        load_catalog().hardware_of("LAB-X1")
    assert len(load_catalog().models) == len(list(load_catalog().models))
