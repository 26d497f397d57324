"""Bytes: of the weights, per token and resident, and of the KV cache.

Reference arithmetic: docs/expectation.md. KV at 16 bit unless told; MXFP4 and NVFP4 are the experts only, everything else
16 bit; for other quantized formats the LM head and the embedding stay 16 bit; file types are whole-model mixtures.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.model import Model, Quantization

WIDE = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Bits per weight: of experts, of the rest, and of LM head and embedding."""

    expert: float
    rest: float
    head: float

    @property
    def quantized(self) -> float:
        """The width that the format is named for."""
        return min(self.expert, self.rest)


def widths(model: Model, quantization: Quantization, *, bits: float | None = None) -> Widths:
    """The widths of a model in a format; `bits` replaces the width of the quantized weights, and wide parts stay wide."""
    width = bits if bits is not None else quantization.bits
    if width is None:
        raise ValueError(f"{quantization.id} has no fixed width")
    if quantization.covers == "experts" and model.experts:
        return Widths(expert=width, rest=quantization.rest, head=quantization.rest)
    if quantization.covers == "all":
        return Widths(expert=width, rest=width, head=width)
    return Widths(expert=width, rest=width, head=WIDE)


def distinct_experts(model: Model, batch: float) -> float:
    """Expected distinct experts per layer at a batch, uniform routing: E (1 - (1 - k/E)^B) (MoESD, arXiv 2505.19645).

    An estimate: real routing is correlated, and above a batch of about 8 this over-counts.
    """
    if not model.experts:
        return 0.0
    return float(model.experts * (1 - (1 - model.experts_per_token / model.experts) ** batch))


def streamed(model: Model) -> float:
    """Parameters streamed per token at batch 1; from active parameters where the catalogue has no better."""
    return model.streamed if model.streamed is not None else model.active - model.head


def step_bytes(model: Model, w: Widths, *, batch: float = 1) -> float:
    """Weight bytes read in one engine step of `batch` streams."""
    if model.non_expert is None:
        return ((streamed(model) - model.head) * w.rest + model.head * w.head) / 8
    rest = (model.non_expert - model.head) * w.rest + model.head * w.head
    return (rest + distinct_experts(model, batch) * model.per_expert_index * w.expert) / 8


def resident_bytes(model: Model, w: Widths) -> float:
    """Weight bytes in memory: all experts, and embedding and head (one of them when they are tied)."""
    if model.non_expert is None:
        total = model.total if model.total is not None else model.active
        heads = model.head if model.tied else 2 * model.head
        return ((total - heads) * w.quantized + heads * w.head) / 8
    rest = (model.non_expert - model.head) * w.rest + model.head * w.head
    embedding = 0.0 if model.tied else model.head * w.head
    return (rest + embedding + model.experts * model.per_expert_index * w.expert) / 8


def cache_bytes(model: Model, context: float, *, bits: float = WIDE) -> float:
    """KV bytes of one stream at a context; windowed layers stop growing at their window."""
    window = min(1.0, context / model.window) if model.window else 1.0
    return (model.kv_bytes_per_token * context + model.kv_constant_bytes * window) * bits / WIDE
