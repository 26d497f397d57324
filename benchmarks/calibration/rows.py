"""Published measurements as rows that the product's own calculator has judged: what was measured, declared, and expected.

Nothing is looked up in the columns that somebody computed before (`mbu`, `ceiling_tps`): ceiling and expected speed come from
`app.expectation`, by the same call that `bandwatch expect` makes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.catalog.load import Catalog
from app.expectation.expect import Workload, expect, machine_of
from app.expectation.laws import Machine, ceiling_tps, expected_s
from app.expectation.model import Expectation
from app.targets.model import Deployment

DATA = Path(__file__).parents[1] / "data"

_FORMATS = {
    "int4-g32": "INT4-G32",
    "int4": "GPTQ-INT4",
    "int8": "INT8-WO",
    "gptq-int8": "INT8-WO",
    "gptq": "GPTQ-INT4",
    "awq": "AWQ",
    "exl2": "EXL2",
    "mxfp4+bf16": "MXFP4",
    "mxfp4": "MXFP4-GGUF",
    "nvfp4 experts": "NVFP4",
    "nvfp4": "NVFP4-LINEAR",
    "mlx": "MLX-4BIT",
    "ollama mlx": "MLX-4BIT",
    "bf16": "BF16",
    "f16": "FP16",
    "fp16": "FP16",
    "fp8": "FP8",
    "q4_0": "Q4_0",
    "q6_k": "Q6_K",
    "q8_0": "Q8_0",
    "iq2_xxs": "IQ2_XXS",
    "8-bit": "INT8",
    "truepoint": "INT8",
    "mixed": "INT8",
}
"""The start of what a source calls its format -> the catalogue's id; the longest that fits. Else a whole-model mixture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One published row beside what the calculator says of it. Speeds in tokens/s of one stream."""

    line: int
    raw: Mapping[str, str]
    measured: float
    deployment: Deployment | None
    """None where the hardware is not known."""
    expectation: Expectation | None
    machine: Machine | None

    @property
    def ratio(self) -> float:
        """R = measured / expected, by the default constants."""
        return self.measured * expected_s(self.known)

    @property
    def of_ceiling(self) -> float:
        """Measured / byte ceiling (bandwidth utilisation); on dataflow machines that of their HBM."""
        return self.measured / ceiling_tps(self.known)

    @property
    def known(self) -> Machine:
        """The machine.

        Raises:
            ValueError: nobody knows it.
        """
        if self.machine is None:
            raise ValueError(f"line {self.line} names no hardware")
        return self.machine

    @property
    def engine(self) -> str:
        return self.raw["engine_or_provider"]

    @property
    def stack(self) -> str:
        """Serving stack and kind of machine: what shares one latency per layer."""
        name, kind = self.engine.lower(), self.known.hardware.kind
        vendor = self.known.hardware.vendor.lower()
        if "batched" in self.raw["kind"]:
            return "batched"
        for word, stack in (("vllm 0.6", "vLLM 0.6.3"), ("gpt-fast", "gpt-fast"), ("lmdeploy", "lmdeploy"), ("mlx", "MLX")):
            if word in name:
                return stack
        if any(word in name for word in ("llama.cpp", "llamacpp", "ollama")):
            place = {"apple": "Metal", "amd": "ROCm/Vulkan"}.get(vendor, "CUDA")
            return f"llama.cpp {place}"
        return {"exllamav2": "exllamav2, MLC", "mlc-llm": "exllamav2, MLC", "vllm": "vLLM"}.get(name, f"other {kind}")

    @property
    def shape(self) -> str:
        """Dense or experts, one device or several."""
        experts = "MoE" if self.known.model.experts else "dense"
        return f"{experts}, {'one device' if self.known.lanes == 1 else 'tensor parallel'}"


def healthy(row: Judged) -> bool:
    """Was one stream alone measured, by somebody who held the machine, with plain decoding and resident weights?

    The measured speed is not asked: a slow row stays in, or the false-alarm rate would mean nothing.
    """
    raw = row.raw
    if row.machine is None or row.machine.hardware.by_layers:
        return False
    alone = raw["batch"] == "1" and not raw["kind"].startswith(("provider", "vendor"))
    return alone and raw["speculative"] == "no" and resident(row)


def resident(row: Judged) -> bool:
    """Do weights and cache lie in the memory of the devices, as far as anybody knows?"""
    flag = row.raw["flag"].lower()
    m, found = row.known, row.expectation
    if found is None or found.weights_bytes is None or "memory" in flag or "spill" in flag:
        return False
    gibi = 1024**3 / 1e9  # cards are sold by the GiB
    return found.weights_bytes + m.batch * m.cache <= m.devices * m.hardware.memory_bytes * gibi


def load(catalog: Catalog, path: Path = DATA / "published_speeds.csv") -> tuple[Judged, ...]:
    """Every row of the file, judged."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(_judged(line, raw, catalog) for line, raw in enumerate(csv.DictReader(file), start=2))


def declared(raw: Mapping[str, str]) -> Deployment | None:
    """What a row says of its machine, as a deployment."""
    if not raw["hardware"] or not raw["weight_bpw"]:
        return None
    mlx_experts = "gpt-oss" in raw["model_id"] and raw["quant"].startswith("MLX")
    paired = "Qwen3.8-27B" in raw["model_id"] and "llama.cpp" in raw["engine_or_provider"]
    return Deployment(
        model_spec=raw["model_id"],
        hardware=raw["hardware"],
        devices=int(raw["n_devices"]),
        quantization="MXFP4-GGUF" if mlx_experts else format_of(raw["quant"]),
        bits=float(raw["weight_bpw"]),
        kv_bits=4.5 if paired else None,
        parallelism="tp" if raw["parallelism"] == "tp" else "pp",
        batch=int(raw["batch"]),
        speculation={"yes": "on", "no": "off"}.get(raw["speculative"], "unknown"),
    )


def format_of(said: str) -> str:
    """The catalogue's format of what a source says."""
    text = said.lower()
    fitting = [start for start in _FORMATS if text.startswith(start)]
    return _FORMATS[max(fitting, key=len)] if fitting else "Q4_K_M"


def _judged(line: int, raw: Mapping[str, str], catalog: Catalog) -> Judged:
    deployment = declared(raw)
    measured = float(raw["output_tps_per_stream"])
    if deployment is None:
        return Judged(line=line, raw=raw, measured=measured, deployment=None, expectation=None, machine=None)
    work = Workload(context_tokens=int(float(raw["context_tokens"] or 0)))
    model, hardware = catalog.model(raw["model_id"]), catalog.hardware_of(raw["hardware"])
    machine, _ = machine_of(deployment, model, hardware, catalog, work)
    expectation = expect(deployment, catalog=catalog, workload=work)
    return Judged(line=line, raw=raw, measured=measured, deployment=deployment, expectation=expectation, machine=machine)


def column(rows: tuple[Judged, ...]) -> Iterator[tuple[int, str, bool]]:
    """Line, what the file's `healthy` column says, and what the rule says."""
    yield from ((row.line, row.raw.get("healthy", ""), healthy(row)) for row in rows)
