"""The catalogue's nouns: one dataclass a file of `data/`, typed, with the source of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MLA_WIDTH = 128
Trust = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One device. Bandwidth in bytes/s (vendor peak), memory in bytes, compute in FLOP/s, dense; None is not known."""

    id: str
    name: str
    vendor: str
    kind: str
    """`dc-gpu`, `ws-gpu`, `gpu`, `soc`, `tpu`, `asic`, `sram` or `dataflow`."""
    memory_bytes: float
    bandwidth: float
    flops_16: float | None
    flops_fp8: float | None
    flops_int8: float | None
    flops_fp4: float | None
    confidence: Trust
    notes: str
    source: str

    @property
    def by_layers(self) -> bool:
        """Does the layer law rule here, and not the byte ceiling?"""
        return self.kind in {"sram", "dataflow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One open-weight model. Parameters are counts (not billions); KV in bytes at 16 bit."""

    id: str
    family: str
    total: float | None
    active: float
    streamed: float | None
    """Parameters streamed per token at batch 1: input embedding excluded, LM head included."""
    non_expert: float | None
    per_expert_index: float
    """Parameters of one expert index, summed over the MoE layers; 0 for a dense model."""
    layers: int
    hidden: int
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    mla_rank: int | None
    mla_rope: int | None
    attention_layers: int | None
    window: int | None
    experts: int
    experts_per_token: int
    vocabulary: int
    tied: bool
    native: str
    kv_bytes_per_token: float
    kv_constant_bytes: float
    aliases: tuple[str, ...]
    notes: str
    source: str

    @property
    def head(self) -> float:
        """Parameters of the LM head (and of the embedding)."""
        return float(self.vocabulary * self.hidden)

    @property
    def query_dim(self) -> int:
        """Width of a head's query, for the quadratic part of prefill; 0 where nothing is known.

        MLA heads are 128 wide beside their rotary part where the catalogue does not say otherwise (the DeepSeek-V3 family).
        """
        if self.head_dim is None and self.mla_rope is not None:
            return MLA_WIDTH + self.mla_rope
        return self.head_dim or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """One weight format. `bits`: of the quantized weights; `covers`: what of the model is quantized."""

    id: str
    name: str
    family: str
    bits: float | None
    """None where the format has no fixed width (EXL2): `--bits` must say it."""
    covers: Literal["experts", "linear", "all", "cache"]
    """`experts`: the rest stays 16 bit; `linear`: LM head and embedding stay 16 bit; `all`: a whole-model mixture."""
    compute: Literal["16", "fp8", "int8", "fp4"]
    rest: float
    """Bits of what an `experts` format leaves wide."""
    notes: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderDefault:
    """What is known of a provider's machines where a target declares none; `hardware` None: several, or not disclosed."""

    id: str
    hosts: tuple[str, ...]
    hardware: str | None
    notes: str
    source: str
