"""What a deployment should reach: every field of `bandwatch expect`, with every assumption in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from app.catalog.load import Catalog
from app.catalog.model import Accelerator, Model
from app.errors import UsageError
from app.expectation.constants import (
    AMBER,
    OVERHEAD,
    RANGE,
    RED,
    SPECULATION_MOST,
    SPECULATION_MOST_SRAM,
    TUNED,
    USABLE,
)
from app.expectation.laws import Machine, ceiling_tps, expected_s, layer_law, prefill_s, ttft_floor_s, ttft_s
from app.expectation.machine import Workload, machine_of, native_format
from app.expectation.model import Basis, Confidence, Expectation
from app.expectation.speculation import parse_speculation
from app.expectation.weights import WIDE, cache_bytes, resident_bytes, step_bytes
from app.targets.deployment import Deployment

__all__ = ["Deployment", "Workload", "expect", "machine_of", "native_format"]


def expect(
    deployment: Deployment, *, catalog: Catalog, workload: Workload | None = None, observed_tps: float | None = None
) -> Expectation:
    """The expectation of a deployment; what it does not say becomes a range over what is possible.

    With an observed speed (tokens/s of one stream) the answer also says which machines explain it.

    Raises:
        UsageError: no model, or values that make no sense; NotFoundError for ids nobody knows.
    """
    work = workload or Workload()
    if deployment.model_spec is None:
        raise UsageError("a deployment needs a model_spec: without it there are no bytes to count")
    for name in ("devices", "batch", "bits", "kv_bits"):
        value = getattr(deployment, name)
        if value is not None and value <= 0:
            raise UsageError(f"{name} must be positive, not {value}")
    model = catalog.model(deployment.model_spec)
    found = _expect(deployment, model, catalog, work)
    if observed_tps is None:
        return found
    from app.expectation.feasible import feasible  # not for those who declare everything: it costs as much as the rest

    return replace(found, feasible=feasible(model, observed_tps, catalog=catalog, deployment=deployment, work=work))


def _expect(deployment: Deployment, model: Model, catalog: Catalog, work: Workload) -> Expectation:
    if deployment.hardware is None:
        return _over_the_possible(deployment, model, catalog, work)
    hardware = catalog.hardware_of(deployment.hardware)
    if hardware.by_layers:
        return _by_layers(deployment, model, hardware, catalog=catalog, work=work)
    if deployment.devices is None:
        return _over_the_possible(deployment, model, catalog, work)
    return _by_bytes(deployment, model, hardware, catalog=catalog, work=work)


def _confidence(model: Model, hardware: Accelerator) -> Confidence:
    if model.streamed is None:
        return Confidence.LOW
    return Confidence(hardware.confidence)


def _by_bytes(deployment: Deployment, model: Model, hardware: Accelerator, *, catalog: Catalog, work: Workload) -> Expectation:
    m, assumed = machine_of(deployment, model, hardware, catalog, work)
    speculation = parse_speculation(deployment.speculation)
    ceiling, step_s = ceiling_tps(m), expected_s(m)
    expected = 1 / step_s
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
    low_s, high_s = ttft_s(m, work.prompt_tokens)
    network = work.network_s or 0.0
    return Expectation(
        basis=Basis.DEPLOYMENT,
        confidence=_confidence(model, hardware),
        **_common(m, work),
        memory_needed_bytes=needed,
        memory_bytes=memory,
        fits=needed <= memory,
        ceiling_tps=ceiling,
        **_thresholds(expected),
        expected_range_tps=(expected * spread[0], expected * spread[1]),
        ttft_floor_s=ttft_floor_s(m, work.prompt_tokens),
        prefill_s=prefill_s(m, work.prompt_tokens),
        ttft_s=(network + low_s, network + high_s),
        assumptions=(*assumed, *_network(work), *_memory(m, resident, needed), *_doubts(model, hardware)),
    )


def _network(work: Workload) -> Iterator[str]:
    if work.network_s is None:
        yield "TTFT on an idle machine: network, gateway and queue come on top"
    else:
        measured = f"{work.network_s * 1e3:.3g} ms of network as measured"
        yield f"TTFT on an idle machine, with {measured}; gateway and queue come on top"


def _memory(m: Machine, resident: float, needed: float) -> Iterator[str]:
    memory = m.devices * m.hardware.memory_bytes
    if needed <= memory:
        return
    there = f"{m.devices} x {m.hardware.id} hold {memory / 1e9:.1f} GB"
    if resident + m.batch * m.cache > memory * USABLE:
        yield f"impossible as declared: weights and cache are {(resident + m.batch * m.cache) / 1e9:.1f} GB, and {there}"
    else:
        yield f"does not fit with a tenth to spare: needs {needed / 1e9:.1f} GB, and {there}"


def _doubts(model: Model, hardware: Accelerator) -> Iterator[str]:
    if hardware.confidence == "low":
        yield f"the figures of {hardware.id} are not confirmed: shown, never a reason for a flag"
    if model.streamed is None:
        yield f"the geometry of {model.id} is not complete: shown, never a reason for a flag"


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


def _thresholds(expected_tps: float) -> dict[str, Any]:
    return {
        "expected_tps": expected_tps,
        "red_below_tps": RED * expected_tps,
        "amber_below_tps": AMBER * expected_tps,
        "tuned_above_tps": TUNED * expected_tps,
    }


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
    return Expectation(
        basis=Basis.LAYER_LAW,
        confidence=Confidence.LOW if hardware.confidence == "low" else Confidence.MEDIUM,
        **{**_common(m, work), "devices": deployment.devices},
        memory_needed_bytes=needed,
        memory_bytes=memory,
        fits=None if memory is None else needed <= memory,
        ceiling_tps=None,
        **_thresholds(expected),
        expected_range_tps=(1e6 / (model.layers * high) * factor, 1e6 / (model.layers * low) * factor * top),
        layer_us=middle,
        assumptions=(
            law,
            *(a for a in assumed if "bandwidth" not in a and "all-reduce" not in a),
            *(f"speculation of unknown strength: up to {top:g} times that" for _ in (1,) if top > 1),
            *_doubts(model, hardware),
        ),
    )


def _over_the_possible(deployment: Deployment, model: Model, catalog: Catalog, work: Workload) -> Expectation:
    """The range over every machine that could be it: what is declared is kept, what fits in memory counts."""
    from app.expectation.feasible import reach

    slowest, fastest, ceiling, machines = reach(model, catalog=catalog, deployment=deployment, work=work)
    said = ", ".join(f"{name} unknown" for name in ("hardware", "devices", "quantization") if getattr(deployment, name) is None)
    assumed = [f"{said}: the range over {machines} deployments of the catalogue that can hold the model"]
    if deployment.hardware is None:
        assumed.append("machines that are judged by layers (Groq, Cerebras, SambaNova) are not counted: name them as hardware")
    if deployment.speculation == "unknown":
        assumed.append("no speculation (nothing is known of it)")
    known = None if deployment.hardware is None else catalog.hardware_of(deployment.hardware)
    confidence = Confidence.LOW if known is None or known.confidence == "low" or model.streamed is None else Confidence.MEDIUM
    return Expectation(
        basis=Basis.FEASIBLE_RANGE,
        confidence=confidence,
        model_spec=model.id,
        hardware=None if known is None else known.id,
        devices=deployment.devices,
        quantization=None if deployment.quantization is None else catalog.quantization(deployment.quantization).id,
        bits_per_weight=deployment.bits,
        batch=deployment.batch,
        context_tokens=work.context_tokens,
        kv_bytes_per_token=cache_bytes(model, work.context_tokens, bits=deployment.kv_bits or WIDE),
        ceiling_tps=ceiling,
        expected_range_tps=(slowest, fastest),
        assumptions=(*assumed, *_doubts_of(model, known)),
    )


def _doubts_of(model: Model, hardware: Accelerator | None) -> tuple[str, ...]:
    return () if hardware is None else tuple(_doubts(model, hardware))
