"""What a deployment should reach: every field of `bandwatch expect`, with every assumption in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from app.catalog.load import Catalog
from app.catalog.model import Accelerator, Model, Quantization
from app.errors import UsageError
from app.expectation.constants import AMBER, OVERHEAD, RANGE, RED, SPECULATION_MOST, SPECULATION_MOST_SRAM, TUNED
from app.expectation.laws import Machine, ceiling_tps, expected_s, latency, layer_law, prefill_s, ttft_floor_s
from app.expectation.model import Basis, Confidence, Expectation
from app.expectation.speculation import parse_speculation
from app.expectation.weights import WIDE, cache_bytes, resident_bytes, step_bytes, widths
from app.targets.model import Deployment

__all__ = ["Deployment", "Workload", "expect", "machine_of", "native_format"]

_NATIVE = (("mxfp4", "MXFP4"), ("int4", "GPTQ-INT4"), ("fp8", "FP8"), ("fp16", "FP16"))
UNKNOWN_DEVICES = (1, 2, 4, 8)
UNKNOWN_FORMATS = ("BF16", "FP8", "NVFP4", "GPTQ-INT4")
RANK = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What one stream does: context and prompt in tokens."""

    context_tokens: int = 2048
    prompt_tokens: int = 512


def expect(deployment: Deployment, *, catalog: Catalog, workload: Workload | None = None) -> Expectation:
    """The expectation of a deployment; what it does not say becomes a range over what is possible.

    Raises:
        UsageError: no model, or values that make no sense; NotFoundError for ids nobody knows.
    """
    work = workload or Workload()
    if deployment.model_spec is None:
        raise UsageError("a deployment needs a model_spec: without it there are no bytes to count")
    for name, value in (("devices", deployment.devices), ("batch", deployment.batch), ("bits", deployment.bits)):
        if value is not None and value <= 0:
            raise UsageError(f"{name} must be positive, not {value}")
    model = catalog.model(deployment.model_spec)
    if deployment.hardware is None:
        return _over_the_possible(deployment, model, catalog, work)
    hardware = catalog.hardware_of(deployment.hardware)
    if hardware.by_layers:
        return _by_layers(deployment, model, hardware, catalog=catalog, work=work)
    if deployment.devices is None:
        return _over_the_possible(deployment, model, catalog, work)
    return _by_bytes(deployment, model, hardware, catalog=catalog, work=work)


def native_format(model: Model, catalog: Catalog) -> Quantization:
    """The format that the model is published in."""
    native = model.native.lower()
    return catalog.quantization(next((name for word, name in _NATIVE if native.startswith(word)), "BF16"))


def machine_of(
    deployment: Deployment, model: Model, hardware: Accelerator, catalog: Catalog, work: Workload
) -> tuple[Machine, tuple[str, ...]]:
    """The machine that the laws see, and what had to be assumed for it.

    Raises:
        UsageError: a format without a width.
    """
    assumed = []
    if deployment.quantization is None:
        quantization = native_format(model, catalog)
        if model.native.lower().startswith("int4"):
            quantization = replace(quantization, covers="experts")
        assumed.append(f"weights in the native format {quantization.id}")
    else:
        quantization = catalog.quantization(deployment.quantization)
    if quantization.covers == "cache":
        raise UsageError(f"{quantization.id} is a format of the cache; give its width by kv-bits")
    if quantization.bits is None and deployment.bits is None:
        raise UsageError(f"{quantization.id} has no fixed width; say it with --bits")
    machine = Machine(
        model=model,
        widths=widths(model, quantization, bits=deployment.bits),
        format=quantization,
        hardware=hardware,
        devices=deployment.devices or 1,
        batch=deployment.batch,
        context=float(work.context_tokens),
        kv_bits=deployment.kv_bits or WIDE,
        pipeline=deployment.parallelism == "pp",
        stack=deployment.stack,
    )
    return machine, (*assumed, *_assumptions(machine, deployment))


def _assumptions(m: Machine, deployment: Deployment) -> Iterator[str]:
    if m.format.covers == "experts" and m.model.experts:
        yield f"experts at {m.widths.expert:g} bit, everything else at {m.widths.rest:g} bit"
    elif m.format.covers in {"linear", "experts"} and m.widths.quantized < WIDE:
        yield "LM head and embedding at 16 bit"
    if deployment.kv_bits is None:
        yield "KV cache at 16 bit"
    if m.model.streamed is None:
        yield "streamed parameters taken from the active ones; the geometry is not in the catalogue"
    if not m.model.kv_bytes_per_token:
        yield "the KV cache of this model is not known and counts as nothing"
    eta, tau, reduce = latency(m)
    yield f"{eta:.2f} of peak bandwidth, {tau * 1e6:.0f} µs a layer" + (f" ({m.stack})" if m.stack else " (a general engine)")
    if reduce:
        yield f"tensor parallel over {m.devices}: two all-reduces of {reduce * 1e6:.1f} µs a layer"
    if m.pipeline and m.devices > 1:
        yield "pipeline parallel: one stream gets the bandwidth of one device"
    if m.batch > 1 and m.model.experts:
        yield f"{m.batch} streams share a step; distinct experts by uniform routing (an estimate)"
    elif m.batch > 1:
        yield f"{m.batch} streams share a step"
    if deployment.speculation == "unknown":
        yield "no speculation (nothing is known of it)"


def _confidence(model: Model, hardware: Accelerator) -> Confidence:
    if model.streamed is None:
        return Confidence.LOW
    return Confidence(hardware.confidence)


def _by_bytes(deployment: Deployment, model: Model, hardware: Accelerator, *, catalog: Catalog, work: Workload) -> Expectation:
    m, assumed = machine_of(deployment, model, hardware, catalog, work)
    speculation = parse_speculation(deployment.speculation)
    ceiling, expected = ceiling_tps(m), 1 / expected_s(m)
    spread = RANGE
    if speculation is not None:
        ceiling *= speculation.tokens_per_step
        expected *= speculation.speedup
        assumed = (
            *assumed,
            f"speculation: acceptance {speculation.alpha:g}, draft length {speculation.gamma}, draft cost {speculation.cost:g}",
        )
    elif deployment.speculation == "on":
        ceiling *= SPECULATION_MOST
        spread = (RANGE[0], RANGE[1] * SPECULATION_MOST)
        assumed = (*assumed, f"speculation of unknown strength: up to {SPECULATION_MOST:g} tokens a step")
    resident = resident_bytes(model, m.widths)
    needed = OVERHEAD * resident + m.batch * m.cache
    memory = m.devices * hardware.memory_bytes
    if needed > memory:
        assumed = (
            *assumed,
            f"impossible as declared: needs {needed / 1e9:.1f} GB, and {m.devices} x {hardware.id} hold {memory / 1e9:.1f} GB",
        )
    return _with_thresholds(
        Expectation(
            basis=Basis.DEPLOYMENT,
            confidence=_confidence(model, hardware),
            **_common(m, work),
            memory_needed_bytes=needed,
            memory_bytes=memory,
            fits=needed <= memory,
            ceiling_tps=ceiling,
            expected_tps=expected,
            expected_range_tps=(expected * spread[0], expected * spread[1]),
            ttft_floor_s=ttft_floor_s(m, work.prompt_tokens),
            prefill_s=prefill_s(m, work.prompt_tokens),
            assumptions=assumed,
        )
    )


def _common(m: Machine, work: Workload) -> dict[str, Any]:
    return {
        "model_spec": m.model.id,
        "hardware": m.hardware.id,
        "devices": m.devices,
        "quantization": m.format.id,
        "bits_per_weight": m.widths.quantized,
        "batch": m.batch,
        "context_tokens": work.context_tokens,
        "weights_bytes": resident_bytes(m.model, m.widths),
        "weights_bytes_per_token": step_bytes(m.model, m.widths, batch=m.batch) / m.batch,
        "kv_bytes_per_token": m.cache,
    }


def _with_thresholds(e: Expectation) -> Expectation:
    if e.expected_tps is None:
        return e
    return replace(
        e,
        red_below_tps=RED * e.expected_tps,
        amber_below_tps=AMBER * e.expected_tps,
        tuned_above_tps=TUNED * e.expected_tps,
    )


def _by_layers(deployment: Deployment, model: Model, hardware: Accelerator, *, catalog: Catalog, work: Workload) -> Expectation:
    """SRAM and dataflow machines: microseconds a layer, for the byte ceiling says nothing there."""
    low, middle, high = layer_law(hardware)
    speculation = parse_speculation(deployment.speculation)
    m, assumed = machine_of(deployment, model, hardware, catalog, work)
    factor = speculation.speedup if speculation is not None else 1.0
    top = SPECULATION_MOST_SRAM if deployment.speculation == "on" else 1.0
    expected = 1e6 / (model.layers * middle) * factor
    needed = OVERHEAD * resident_bytes(model, m.widths) + m.batch * m.cache
    memory = None if deployment.devices is None else deployment.devices * hardware.memory_bytes
    law = f"{low:g}-{high:g} µs a layer, as all plain published rows of {hardware.vendor} show; there is no byte ceiling"
    return _with_thresholds(
        Expectation(
            basis=Basis.LAYER_LAW,
            confidence=Confidence.LOW if hardware.confidence == "low" else Confidence.MEDIUM,
            **{**_common(m, work), "devices": deployment.devices},
            memory_needed_bytes=needed,
            memory_bytes=memory,
            fits=None if memory is None else needed <= memory,
            ceiling_tps=None,
            expected_tps=expected,
            expected_range_tps=(1e6 / (model.layers * high) * factor, 1e6 / (model.layers * low) * factor * top),
            layer_us=middle,
            assumptions=(law, *(a for a in assumed if "bandwidth" not in a and "all-reduce" not in a)),
        )
    )


def _over_the_possible(deployment: Deployment, model: Model, catalog: Catalog, work: Workload) -> Expectation:
    """The range over every machine that could be it: what is declared is kept, what fits in memory counts."""
    found = [e for e in _candidates(deployment, model, catalog, work) if e.fits and e.expected_range_tps is not None]
    if not found:
        raise UsageError(f"no machine of the catalogue that fits what is declared can hold {model.id}")
    speeds = [e.expected_tps for e in found if e.expected_tps is not None]
    ceilings = [e.ceiling_tps for e in found if e.ceiling_tps is not None]
    said = ", ".join(
        f"{name} unknown"
        for name, value in (
            ("hardware", deployment.hardware),
            ("devices", deployment.devices),
            ("quantization", deployment.quantization),
        )
        if value is None
    )
    return Expectation(
        basis=Basis.FEASIBLE_RANGE,
        confidence=Confidence.LOW if deployment.hardware is None else Confidence.MEDIUM,
        model_spec=model.id,
        hardware=deployment.hardware,
        devices=deployment.devices,
        quantization=deployment.quantization,
        batch=deployment.batch,
        context_tokens=work.context_tokens,
        kv_bytes_per_token=cache_bytes(model, work.context_tokens, bits=deployment.kv_bits or WIDE),
        ceiling_tps=max(ceilings, default=None),
        expected_range_tps=(min(speeds), max(speeds)),
        assumptions=(f"{said}: the range over {len(found)} machines of the catalogue that can hold the model",),
    )


def _candidates(deployment: Deployment, model: Model, catalog: Catalog, work: Workload) -> Iterator[Expectation]:
    hardware: Sequence[Accelerator]
    if deployment.hardware is not None:
        hardware = [catalog.hardware_of(deployment.hardware)]
    else:
        hardware = [a for a in catalog.accelerators.values() if a.confidence != "low" and a.kind in {"dc-gpu", "asic", "tpu"}]
    devices = UNKNOWN_DEVICES if deployment.devices is None else (deployment.devices,)
    native = native_format(model, catalog).id
    formats = tuple(dict.fromkeys((native, *UNKNOWN_FORMATS)))
    formats = formats if deployment.quantization is None else (deployment.quantization,)
    for accelerator, count, name in product(hardware, devices, formats):
        concrete = replace(deployment, hardware=accelerator.id, devices=count, quantization=name)
        yield _by_bytes(concrete, model, accelerator, catalog=catalog, work=work)
