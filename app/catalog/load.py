"""The catalogue out of its files, read once; look-up by id, alias or anything people write, with near matches."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from app.catalog.model import Accelerator, Model, Quantization
from app.errors import ConfigError, NotFoundError, Problem, UsageError

T = TypeVar("T", Accelerator, Model, Quantization)
Row = Mapping[str, str]

_ENDINGS = ("-instruct", "-it", "-chat", "-versatile", "-instant", "-fp8", "-bf16", "-hf", "-tee", "-turbo", "-maas", "-latest")
_EXPERTS_ONLY = frozenset({"MXFP4", "MXFP4-GGUF", "NVFP4", "MXFP4-OCP", "NVFP4-FLOAT"})
_SHORT = {
    "int4": "GPTQ-INT4",
    "w4a16": "GPTQ-INT4",
    "gptq": "GPTQ-INT4",
    "fp8-e4m3": "FP8",
    "e4m3": "FP8",
    "w8a8": "INT8",
    "gptq-int8": "INT8-WO",
    "int8-weight-only": "INT8-WO",
    "w8a16": "INT8-WO",
    "f16": "FP16",
    "f32": "FP32",
    "float16": "FP16",
    "half": "FP16",
    "bfloat16": "BF16",
    "float32": "FP32",
    "nf4-dq": "NF4",
    "mlx4": "MLX-4BIT",
    "4bit": "MLX-4BIT",
    "8bit": "MLX-8BIT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """What is known. Look-ups raise NotFoundError with near matches, or UsageError where a name fits several."""

    accelerators: Mapping[str, Accelerator]
    models: Mapping[str, Model]
    quantizations: Mapping[str, Quantization]
    names: Mapping[str, Mapping[str, tuple[str, ...]]]
    """kind -> folded name -> ids that it may mean."""

    def hardware_of(self, text: str) -> Accelerator:
        """The accelerator of an id or a marketing name."""
        return self._find("hardware", text, self.accelerators)

    def model(self, text: str) -> Model:
        """The model of an id, a provider's id for it, or either without its ending (`-instruct`, `:free`)."""
        return self._find("model", text, self.models)

    def quantization(self, text: str) -> Quantization:
        """The format of an id (`INT4` is `GPTQ-INT4`)."""
        return self._find("quantization", _SHORT.get(text.strip().lower(), text), self.quantizations)

    def _find(self, kind: str, text: str, rows: Mapping[str, T]) -> T:
        names = self.names[kind]
        for candidate in _candidates(text):
            ids = names.get(candidate, ())
            if len(ids) == 1:
                return rows[ids[0]]
            if ids:
                exact = [i for i in ids if fold(i) == candidate]
                if len(exact) == 1:
                    return rows[exact[0]]
                raise UsageError(f"{kind} {text!r} may mean {', '.join(sorted(ids))}; name one of them")
        raise NotFoundError(f"no {kind} {text!r} in the catalogue", near=self._near(fold(text), names))

    def _near(self, folded: str, names: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        found = get_close_matches(folded, names, n=6, cutoff=0.55)
        found += [name for name in names if len(folded) >= 3 and folded in name][:4]
        return tuple(dict.fromkeys(i for name in found for i in names[name]))[:4]


def fold(text: str) -> str:
    """A name for comparison: lower case, one kind of separator."""
    return re.sub(r"[\s_/:.]+", "-", text.strip().lower()).strip("-")


def _candidates(text: str) -> Iterable[str]:
    """A name as it is, then without a provider's prefix, a `:suffix`, or an ending, in that order."""
    plain = text.strip().lower()
    tried: dict[str, None] = {fold(plain): None}
    base = plain.split(":", 1)[0]
    tried[fold(base)] = None
    for form in (base, base.rsplit("/", 1)[-1]):
        tried[fold(form)] = None
        for ending in _ENDINGS:
            if form.endswith(ending):
                tried[fold(form.removesuffix(ending))] = None
    return tried


def load_catalog(extra: Path | None = None) -> Catalog:
    """Read the shipped files, and a folder of one's own (`hardware.csv`, `models.csv`, `quant.csv`), whose rows win.

    Raises:
        ConfigError: a row of one's own that cannot be used, with file and line.
    """
    accelerators = {a.id: a for a in _read("hardware.csv", _accelerator, extra)}
    models = {m.id: m for m in _read("models.csv", _model, extra)}
    quantizations = {q.id: q for q in _read("quant.csv", _quantization, extra)}
    return Catalog(
        accelerators=accelerators,
        models=models,
        quantizations=quantizations,
        names={
            "hardware": _names((a.id, (a.name, *_hardware_names(a))) for a in accelerators.values()),
            "model": _names((m.id, (*m.aliases, m.id.rsplit("/", 1)[-1], *_shortened(m))) for m in models.values()),
            "quantization": _names((q.id, (q.name,)) for q in quantizations.values()),
        },
    )


def _names(rows: Iterable[tuple[str, Iterable[str]]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for row_id, names in rows:
        for name in (row_id, *names):
            if name:
                found.setdefault(fold(name), {})[row_id] = None
    return {name: tuple(ids) for name, ids in found.items()}


def _shortened(model: Model) -> Iterable[str]:
    short = model.id.rsplit("/", 1)[-1].lower()
    for ending in ("-instruct", "-it"):
        if short.endswith(ending):
            yield short.removesuffix(ending)


def _hardware_names(accelerator: Accelerator) -> Iterable[str]:
    """An id without its memory (`H100-SXM`), and its vendor before its name."""
    short = re.sub(r"-\d+GB$", "", accelerator.id)
    yield short
    yield f"{accelerator.vendor} {accelerator.name}"


def _read(name: str, make: Any, extra: Path | None) -> Iterable[Any]:  # noqa: ANN401 - the makers below
    with (files("app.catalog") / "data" / name).open(encoding="utf-8") as shipped:
        yield from (make(row) for row in csv.DictReader(shipped))
    if extra is not None and (own := extra / name).is_file():
        with own.open(encoding="utf-8", newline="") as file:
            for line, row in enumerate(csv.DictReader(file), start=2):
                try:
                    yield make(row)
                except (KeyError, ValueError, TypeError) as error:
                    raise ConfigError([Problem(file=str(own), line=line, message=f"not usable: {error}")]) from error


def _number(row: Row, name: str) -> float | None:
    value = (row.get(name) or "").strip()
    return float(value) if value else None


def _scaled(row: Row, name: str, scale: float) -> float | None:
    value = _number(row, name)
    return None if value is None else value * scale


def _needed(row: Row, name: str, scale: float = 1.0) -> float:
    value = _scaled(row, name, scale)
    if value is None:
        raise ValueError(f"{name} is empty")
    return value


def _whole(row: Row, name: str) -> int | None:
    value = _number(row, name)
    return None if value is None else int(value)


def _accelerator(row: Row) -> Accelerator:
    trust = row["confidence"].strip()
    if trust not in {"high", "medium", "low"}:
        raise ValueError(f"confidence is {trust!r}; write high, medium or low")
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


def _model(row: Row) -> Model:
    aliases = []
    for name in ("aliases_groq", "aliases_cerebras", "aliases_openrouter", "aliases_together", "aliases_fireworks"):
        aliases += (row.get(name) or "").split("|")
    for group in (row.get("aliases_other") or "").split(";"):
        aliases += group.split(": ", 1)[-1].split("|")
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
        aliases=tuple(alias.strip() for alias in aliases if alias.strip()),
        notes=row.get("notes") or "",
        source=row.get("source") or "",
    )


def _quantization(row: Row) -> Quantization:
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
