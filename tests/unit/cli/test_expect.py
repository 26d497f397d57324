"""The calculator and the catalogue on the command line: worked cases to their digits, lazily imported, wrong usage in words."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.cli.root import run

OWN = """
hardware:
  - {id: LAB-X1, name: Lab X1, vendor: Lab, class: dc-gpu, memory_GB: 96, bandwidth_GBps: 4000, confidence: medium}
"""


def answer(capsys: pytest.CaptureFixture[str], line: str) -> dict[str, Any]:
    assert run(["expect", *line.split(), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("line", "field", "value", "within"),
    [
        ("--model-spec llama-3.3-70b --hardware H100-SXM-80GB --quantization FP16 --context 0", "fits", False, 0),
        ("--model-spec llama-3.3-70b --hardware H100-SXM-80GB --quantization FP16 --context 0", "ceiling_tps", 24.1, 0.05),
        (
            "--model-spec llama-3.3-70b --hardware H100-SXM-80GB --devices 2 --quantization FP16 --context 0",
            "ceiling_tps",
            48.2,
            0.05,
        ),
        ("--model-spec llama-3.3-70b --hardware H100-SXM-80GB --devices 2 --quantization FP16", "expected_tps", 31.5, 0.6),
        ("--model-spec llama-3.3-70b --hardware H100-SXM-80GB --quantization INT4 --context 0", "ceiling_tps", 89, 0.5),
        ("--model-spec deepseek-ai/DeepSeek-R1 --hardware H100-SXM-80GB --devices 8", "fits", False, 0),
        ("--model-spec deepseek-ai/DeepSeek-R1 --hardware H100-SXM-80GB --devices 8", "weights_bytes", 671e9, 2e9),
        ("--model-spec deepseek-r1 --hardware m2-ultra --devices 2 --quantization Q4_K_M", "fits", False, 0),
        ("--model-spec openai/gpt-oss-120b --hardware H100-SXM-80GB", "weights_bytes_per_token", 5.0e9, 0.01e9),
        ("--model-spec gpt-oss-120b --hardware groq-lpu-v1 --devices 576", "layer_us", 46, 0),
        ("--model-spec gpt-oss-120b --hardware groq-lpu-v1 --devices 576", "ceiling_tps", None, 0),
        ("--model-spec llama-3.1-8b --hardware b200 --quantization int4", "weights_bytes_per_token", 4.7e9, 0.03e9),
    ],
)
def test_worked_cases(capsys: pytest.CaptureFixture[str], line: str, field: str, value: float | None, within: float) -> None:
    found = answer(capsys, line)[field]
    assert found is value if value is None or isinstance(value, bool) else found == pytest.approx(value, abs=within)


def test_an_observed_speed_and_a_measured_network_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--model-spec gpt-oss-120b --hardware H100-SXM-80GB --observed 150 --network 80ms")
    assert found["feasible"]["observed_tps"] == 150
    assert found["ttft_s"][0] == pytest.approx(found["prefill_s"][0] + 0.08)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--model-spec gpt-oss-120b --hardware H100-SXM-81GB", "did you mean H100-SXM-80GB"),
        ("--model-spec gpt-oss-121b --hardware H100-SXM-80GB", "did you mean openai/gpt-oss-120b"),
        ("--model-spec gpt-oss-120b --hardware h100", "may mean H100-NVL-94GB, H100-PCIE-80GB, H100-SXM-80GB"),
        ("--model-spec gpt-oss-120b --network soon", "is not a duration"),
        ("--model-spec gpt-oss-120b --observed 0", "must be positive"),
        ("--model-spec gpt-oss-120b --catalog none.yaml", "cannot be read"),
        ("", "Missing option"),
    ],
)
def test_wrong_usage_is_answered_in_words_with_exit_code_2(capsys: pytest.CaptureFixture[str], line: str, told: str) -> None:
    assert run(["expect", *line.split()]) == 2
    assert told in capsys.readouterr().err


def test_rows_of_one_s_own_are_found_by_both_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    found = answer(capsys, f"--model-spec llama-3.1-8b --hardware lab-x1 --catalog {tmp_path / 'own.yaml'}")
    assert found["hardware"] == "LAB-X1"
    assert run(["catalog", "hardware", "lab", "--catalog", str(tmp_path / "own.yaml"), "--json"]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == ["LAB-X1"]


@pytest.mark.parametrize(
    ("kind", "query", "row"),
    [
        ("hardware", "h100", "H100-SXM-80GB"),
        ("models", "gpt-oss", "openai/gpt-oss-20b"),
        ("quantizations", "mxfp4", "MXFP4-GGUF"),
    ],
)
def test_the_catalogue_is_a_table(capsys: pytest.CaptureFixture[str], kind: str, query: str, row: str) -> None:
    assert run(["catalog", kind, query]) == 0
    assert row in capsys.readouterr().out
    assert run(["catalog", kind, "nothing-like-it-at-all"]) == 2


def test_the_calculator_imports_neither_the_service_nor_the_config() -> None:
    heavy = (
        "fastapi",
        "sqlalchemy",
        "pydantic",
        "asyncio",
        "httpx2",
        "yaml",
        "structlog",
        "importlib.metadata",
        "app.targets.model",
    )
    code = (
        "import sys; from app.cli.root import run; run(['expect', '--model-spec', 'gpt-oss-120b', '--hardware', 'H200']); "
        f"sys.exit(', '.join(name for name in {heavy!r} if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_looked_up_when_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("bandwatch, version ")
