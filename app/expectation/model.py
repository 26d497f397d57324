"""An Expectation: what a deployment should reach, how sure that is, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Basis(StrEnum):
    """What an expectation rests on."""

    DEPLOYMENT = "deployment"
    FEASIBLE_RANGE = "feasible_range"
    LAYER_LAW = "layer_law"
    BASELINE = "baseline"
    SLO = "slo"


class Confidence(StrEnum):
    """How far to trust it; low never drives a flag."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one stream should reach. Speeds in tokens per second, sizes in bytes; None is unknown, never 0.

    The fields are those of `bandwatch expect --json` (docs: contract).
    """

    basis: Basis
    confidence: Confidence
    model_spec: str | None = None
    hardware: str | None = None
    devices: int | None = None
    quantization: str | None = None
    bits_per_weight: float | None = None
    batch: int = 1
    context_tokens: int = 2048
    weights_bytes: float | None = None
    weights_bytes_per_token: float | None = None
    kv_bytes_per_token: float | None = None
    memory_needed_bytes: float | None = None
    memory_bytes: float | None = None
    fits: bool | None = None
    ceiling_tps: float | None = None
    expected_tps: float | None = None
    expected_range_tps: tuple[float, float] | None = None
    red_below_tps: float | None = None
    amber_below_tps: float | None = None
    tuned_above_tps: float | None = None
    ttft_floor_s: float | None = None
    prefill_s: tuple[float, float] | None = None
    layer_us: float | None = None
    assumptions: tuple[str, ...] = ()
