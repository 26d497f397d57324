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
class Explaining:
    """One accelerator, and the deployments of it that explain an observed speed, as (devices, format).

    Devices and format are None on machines judged by layers, where they cannot be told.
    """

    hardware: str
    plain: tuple[tuple[int | None, str | None], ...]
    speculating: tuple[tuple[int | None, str | None], ...]
    """Those that would need speculation for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasible:
    """What an observed speed says of a machine that nobody declared: a set, and bounds. Bytes/s, bits, tokens/s."""

    observed_tps: float
    deployments: int
    """How many of the catalogue's (accelerator, devices, format) explain it."""
    least_bandwidth: float
    """Bytes/s that one stream gets at least, at the narrowest width; a lower bound, not an estimate."""
    least_bandwidth_speculating: float
    largest_bits: float | None
    """Widest quantized weights that are plausible without speculation; None: no machine explains the speed without it."""
    largest_bits_speculating: float | None
    bandwidth_by_bits: tuple[tuple[float, float], ...]
    """(bits per weight, bytes/s that weights of this width would need without speculation)."""
    explaining: tuple[Explaining, ...]
    """By accelerator, in the order of the catalogue."""

    def explains(self, hardware: str, devices: int | None, quantization: str | None, *, speculating: bool = True) -> bool:
        """Is this deployment one of the set? Without `speculating`, only if it needs none."""
        for each in self.explaining:
            if each.hardware == hardware:
                found = each.plain + each.speculating if speculating else each.plain
                return (devices, quantization) in found or (None, None) in found
        return False


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
    ttft_s: tuple[float, float] | None = None
    """First token on an idle machine: prefill and at most one step, and the network where it was measured."""
    layer_us: float | None = None
    feasible: Feasible | None = None
    """Which machines explain the observed speed; None where none was given."""
    assumptions: tuple[str, ...] = ()
