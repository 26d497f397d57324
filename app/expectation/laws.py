"""The laws: ceiling, expected time, prefill. Plain functions of bytes, rates and layers."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.model import Accelerator, Model, Quantization
from app.expectation.constants import (
    ALL_REDUCE_DEFAULT_S,
    ALL_REDUCE_S,
    ETA,
    LAYER_LAW_US,
    MFU,
    MFU_DECODE,
    STACK_BY_VENDOR,
    STACK_NAMES,
    STACKS,
    TAU_DENSE_S,
    TAU_EXPERTS_S,
)
from app.expectation.weights import Widths, cache_bytes, step_bytes, streamed


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A model on devices: all that the laws ask for."""

    model: Model
    widths: Widths
    format: Quantization
    hardware: Accelerator
    devices: int
    batch: int
    context: float
    kv_bits: float
    pipeline: bool
    stack: str | None

    @property
    def lanes(self) -> int:
        """Devices whose bandwidth one stream gets: all in tensor parallel, one in a pipeline."""
        return 1 if self.pipeline else self.devices

    @property
    def flops(self) -> float | None:
        """Peak FLOP/s of one device in the format's arithmetic; 16-bit where the device has none of its own."""
        return flops_of(self.hardware, self.format)

    @property
    def flops_at_most(self) -> float | None:
        """What arithmetic cannot pass: GeForce cards add 16-bit products in 16 bit at twice the rate that is listed."""
        geforce = self.hardware.kind == "gpu" and self.hardware.vendor == "NVIDIA" and self.format.compute == "16"
        return self.flops * 2 if geforce and self.flops is not None else self.flops

    @property
    def step(self) -> float:
        """Bytes of one engine step: weights once, and every stream's cache."""
        return step_bytes(self.model, self.widths, batch=self.batch) + self.batch * self.cache

    @property
    def cache(self) -> float:
        """KV bytes of one stream."""
        return cache_bytes(self.model, self.context, bits=self.kv_bits)

    @property
    def compute_s(self) -> float:
        """Seconds of arithmetic of one step at peak: 2 P B / (N F)."""
        return 0.0 if self.flops is None else 2 * streamed(self.model) * self.batch / (self.lanes * self.flops)


def ceiling_tps(m: Machine) -> float:
    """Tokens per second of one stream that no honest deployment passes without speculation."""
    return 1 / max(m.step / (m.lanes * m.hardware.bandwidth), m.compute_s)


def stack_of(name: str | None, hardware: Accelerator) -> str | None:
    """The serving stack that is known by a name on this hardware; None where nothing is known of it."""
    plain = (name or "").strip().lower().replace(" ", "-")
    plain = STACK_NAMES.get(plain, plain)
    plain = STACK_BY_VENDOR.get((plain, hardware.vendor.lower()), plain)
    return plain if plain in STACKS else None


def flops_of(hardware: Accelerator, quantization: Quantization) -> float | None:
    """Peak FLOP/s of one device in a format's arithmetic; 16-bit where the device has none of its own."""
    match quantization.compute:
        case "fp8":
            return hardware.flops_fp8 or hardware.flops_16
        case "int8":
            return hardware.flops_int8 or hardware.flops_16
        case "fp4":
            return hardware.flops_fp4 or hardware.flops_16
        case _:
            return hardware.flops_16


def pace(model: Model, hardware: Accelerator, *, lanes: int, stack: str | None) -> tuple[float, float, float]:
    """(eta, tau, all-reduce) in seconds: of the named stack, else the defaults."""
    default = TAU_EXPERTS_S if model.experts else TAU_DENSE_S
    eta, tau = STACKS.get(stack_of(stack, hardware) or "", (ETA, default))
    if model.experts:
        tau = max(tau, TAU_EXPERTS_S)
    return eta, tau, ALL_REDUCE_S.get(hardware.id, ALL_REDUCE_DEFAULT_S) if lanes > 1 else 0.0


def latency(m: Machine) -> tuple[float, float, float]:
    """(eta, tau, all-reduce) in seconds of a machine."""
    return pace(m.model, m.hardware, lanes=m.lanes, stack=m.stack)


def step_s(read_s: float, compute_s: float, *, eta: float, fixed_s: float) -> float:
    """Seconds of one step from those of its bytes and its arithmetic at peak: max(read / eta, compute / MFU) + fixed."""
    return max(read_s / eta, compute_s / MFU_DECODE) + fixed_s


def expected_s(m: Machine) -> float:
    """Seconds per step: max(bytes / (eta N BW), compute / MFU) + layers (tau + 2 all-reduces)."""
    eta, tau, reduce = latency(m)
    read_s = m.step / (m.lanes * m.hardware.bandwidth)
    return step_s(read_s, m.compute_s, eta=eta, fixed_s=m.model.layers * (tau + 2 * reduce))


def layer_law(hardware: Accelerator) -> tuple[float, float, float]:
    """Microseconds per layer (low, middle, high) of an SRAM or dataflow machine."""
    vendor = hardware.vendor.lower()
    return next(
        (law for name, law in LAYER_LAW_US.items() if name in vendor or name in hardware.id.lower()), LAYER_LAW_US["groq"]
    )


def prefill_flops(model: Model, tokens: float) -> float:
    """2 P_lin N + 2 L n_q d N^2 (causal), and the head once."""
    linear = 2 * (streamed(model) - model.head) * tokens + 2 * model.head
    layers = model.attention_layers if model.attention_layers is not None else model.layers
    return linear + 2 * layers * (model.heads or 0) * model.query_dim * tokens * tokens


def prefill_s(m: Machine, tokens: float) -> tuple[float, float]:
    """Seconds of prefill, low and high: compute over the MFU interval, never under the read of the weights.

    The low end takes the best MFU at the rate that nothing passes, the high end the worst at the rate that is listed.
    """
    floor = weights_read_s(m)
    if m.flops is None or m.flops_at_most is None:
        return floor, floor / ETA
    work = prefill_flops(m.model, tokens) / m.lanes
    read = step_bytes(m.model, m.widths, batch=tokens) / (ETA * m.lanes * m.hardware.bandwidth)
    return max(work / (m.flops_at_most * MFU[1]), floor), max(work / (m.flops * MFU[0]), read)


def ttft_floor_s(m: Machine, tokens: float) -> float:
    """Seconds that prefill takes at the very least: all arithmetic at peak, or one read of the weights."""
    floor = weights_read_s(m)
    if m.flops_at_most is None:
        return floor
    return max(floor, prefill_flops(m.model, tokens) / (m.lanes * m.flops_at_most))


def ttft_s(m: Machine, tokens: float) -> tuple[float, float]:
    """Seconds to the first token on an idle machine, without the network: prefill, and at most one more step."""
    low, high = prefill_s(m, tokens)
    return low, high + expected_s(m)


def weights_read_s(m: Machine) -> float:
    """Seconds of one read of the weights at peak bandwidth."""
    return step_bytes(m.model, m.widths, batch=1) / (m.lanes * m.hardware.bandwidth)
