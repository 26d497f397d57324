"""Rows of the files as typed nouns: one maker a file, and a mapping that makes a row when somebody asks for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from app.catalog.model import Accelerator, Model, ProviderDefault, Quantization

T = TypeVar("T")
Row = Mapping[str, str]

_EXPERTS_ONLY = frozenset({"MXFP4", "MXFP4-GGUF", "NVFP4", "MXFP4-OCP", "NVFP4-FLOAT"})
_ALIAS_COLUMNS = ("aliases_groq", "aliases_cerebras", "aliases_openrouter", "aliases_together", "aliases_fireworks")


KINDS = ("dc-gpu", "ws-gpu", "gpu", "soc", "tpu", "asic", "sram", "dataflow")


class Rows(Mapping[str, T], Generic[T]):
    """Id -> noun, made from its row at first use: a calculator needs three of two hundred."""

    def __init__(self, raw: Mapping[str, Row], make: Callable[[Row], T]) -> None:
        self.raw = raw
        self._make = make
        self._made: dict[str, T] = {}

    def __getitem__(self, row_id: str) -> T:
        if row_id not in self._made:
            self._made[row_id] = self._make(self.raw[row_id])
        return self._made[row_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)


def _number(row: Row, name: str) -> float | None:
    value = (row.get(name) or "").strip()
    try:
        return float(value) if value else None
    except ValueError:
        raise ValueError(f"{name} is {value!r}, which is no number") from None


def _scaled(row: Row, name: str, scale: float) -> float | None:
    value = _number(row, name)
    return None if value is None else value * scale


def _needed(row: Row, name: str, scale: float = 1.0) -> float:
    value = _scaled(row, name, scale)
    if value is None or not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a positive number")
    return value


def _whole(row: Row, name: str) -> int | None:
    value = _number(row, name)
    return None if value is None else int(value)


def accelerator(row: Row) -> Accelerator:
    """A row of hardware.csv.

    Raises:
        KeyError, ValueError: a column that is needed is missing, empty, or no number.
    """
    trust = row["confidence"].strip()
    if trust not in {"high", "medium", "low"}:
        raise ValueError(f"confidence is {trust!r}; write high, medium or low")
    if row["class"] not in KINDS:
        raise ValueError(f"class is {row['class']!r}; write one of {', '.join(KINDS)}")
    return Accelerator(
        id=row["id"],
        name=row["name"],
        vendor=row["vendor"],
        kind=row["class"],
        memory_bytes=_needed(row, "memory_GB", 1e9),
        bandwidth=_needed(row, "bandwidth_GBps", 1e9),
        flops_16=_scaled(row, "bf16_dense_TFLOPS", 1e12),
        flops_fp8=_scaled(row, "fp8_dense_TFLOPS", 1e12),
        flops_int8=_scaled(row, "int8_dense_TOPS", 1e12),
        flops_fp4=_scaled(row, "fp4_dense_TFLOPS", 1e12),
        confidence=trust,  # type: ignore[arg-type]  # checked above
        notes=row.get("notes") or "",
        source=row.get("source") or "",
    )


def model(row: Row) -> Model:
    """A row of models.csv.

    Raises:
        KeyError, ValueError: a column that is needed is missing, empty, or no number.
    """
    return Model(
        id=row["model_id"],
        family=row["family"],
        total=_scaled(row, "total_params_B", 1e9),
        active=_needed(row, "active_params_B", 1e9),
        streamed=_scaled(row, "streamed_params_B_batch1", 1e9),
        non_expert=_scaled(row, "non_expert_params_B", 1e9),
        per_expert_index=_scaled(row, "params_B_per_expert_index", 1e9) or 0.0,
        layers=int(_needed(row, "n_layers")),
        hidden=int(_number(row, "hidden_size") or 0),
        heads=_whole(row, "n_heads"),
        kv_heads=_whole(row, "n_kv_heads"),
        head_dim=_whole(row, "head_dim"),
        mla_rank=_whole(row, "mla_kv_lora_rank"),
        mla_rope=_whole(row, "mla_rope_dim"),
        attention_layers=_whole(row, "n_full_attention_layers"),
        window=_whole(row, "sliding_window"),
        experts=_whole(row, "n_experts") or 0,
        experts_per_token=_whole(row, "experts_per_token") or 0,
        vocabulary=int(_number(row, "vocab_size") or 0),
        tied=(row.get("tied_embeddings") or "").strip() == "True",
        native=row["native_dtype"],
        kv_bytes_per_token=_number(row, "kv_bytes_per_token_16bit") or 0.0,
        kv_constant_bytes=_number(row, "kv_const_bytes_16bit") or 0.0,
        aliases=aliases_of(row),
        notes=row.get("notes") or "",
        source=row.get("source") or "",
    )


def quantization(row: Row) -> Quantization:
    """A row of quant.csv.

    Raises:
        KeyError, ValueError: a column that is needed is missing, empty, or no number.
    """
    family, applies = row["family"], row["applies_to"]
    whole = re.search(r"\d+(?:\.\d+)?", re.sub(r"[QI]\w*_\w+", "", row.get("whole_model_bpw_typical") or ""))
    block = _number(row, "bits_per_weight_block") if re.fullmatch(r"[\d.]*", row["bits_per_weight_block"]) else None
    covers = _covers(row["id"], family, applies)
    bits = block
    if covers == "all" and family == "GGUF" and whole is not None:
        bits = float(whole.group())
    return Quantization(
        id=row["id"],
        name=row["name"],
        family=family,
        bits=bits,
        covers=covers,
        compute=_compute(row["id"]),
        rest=_number(row, "rest_bits") or 16.0,
        notes=row.get("notes") or "",
        source=row.get("source") or "",
    )


def _covers(row_id: str, family: str, applies: str) -> Any:  # noqa: ANN401 - the literal of Quantization
    if applies.startswith("KV"):
        return "cache"
    if row_id in _EXPERTS_ONLY:
        return "experts"
    if family == "GGUF" or row_id.startswith("MLX") or row_id in {"FP32", "FP16", "BF16"}:
        return "all"
    return "linear"


def _compute(row_id: str) -> Any:  # noqa: ANN401 - the literal of Quantization
    if row_id.startswith(("FP8", "MXFP8")):
        return "fp8"
    if row_id.startswith(("MXFP4", "NVFP4")) and row_id != "MXFP4-GGUF":
        return "fp4"
    return "int8" if row_id == "INT8" else "16"


def aliases_of(row: Row) -> tuple[str, ...]:
    """What providers call a model."""
    aliases = [alias for name in _ALIAS_COLUMNS for alias in (row.get(name) or "").split("|")]
    for group in (row.get("aliases_other") or "").split(";"):
        aliases += group.split(": ", 1)[-1].split("|")
    return tuple(alias.strip() for alias in aliases if alias.strip())


def hardware_names(row: Row) -> tuple[str, ...]:
    """Marketing name, id without its memory (`H100-SXM`), family (`H100`, `H100-80GB`), and the vendor before them.

    A family that several rows share is answered with their ids.
    """
    row_id, vendor = row["id"], row["vendor"]
    memory = re.search(r"-\d+GB$", row_id)
    short = row_id.removesuffix(memory.group()) if memory else row_id
    family = short.split("-", 1)[0] if memory else short
    names = (row["name"], short, family, family + (memory.group() if memory else ""))
    return (*names, *(f"{vendor} {name}" for name in names))


def provider(row: Row) -> ProviderDefault:
    """A row of providers.csv."""
    return ProviderDefault(
        id=row["id"],
        hosts=tuple(row["hosts"].split("|")),
        hardware=row["hardware"] or None,
        notes=row["notes"],
        source=row["source"],
    )
