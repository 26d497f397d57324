"""From what is declared to the machine that the laws see, with everything that had to be assumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from app.catalog.load import Catalog
from app.catalog.model import Accelerator, Model, Quantization
from app.errors import UsageError
from app.expectation.laws import Machine, latency, stack_of
from app.expectation.weights import WIDE, widths
from app.targets.deployment import Deployment

_NATIVE = (("mxfp4", "MXFP4"), ("int4", "GPTQ-INT4"), ("fp8", "FP8"), ("fp16", "FP16"))
_MXFP4 = frozenset({"MXFP4", "MXFP4-OCP"})
_GGUF_STACKS = ("llama.cpp", "llamacpp", "ollama", "mlx", "lm-studio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What one stream does: context and prompt in tokens; and what the network adds to its first token, in seconds.

    `network_s` is a floor that was measured (TCP, TLS and one round trip to the same host); None where nobody measured it.
    """

    context_tokens: int = 2048
    prompt_tokens: int = 512
    network_s: float | None = None


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
    if quantization.id in _MXFP4 and (deployment.stack or "").lower().startswith(_GGUF_STACKS):
        quantization = catalog.quantization("MXFP4-GGUF")
        assumed.append(f"{deployment.stack} ships MXFP4 with everything but the experts at 8.5 bit")
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
    known = stack_of(m.stack, m.hardware)
    engine = known or (f"{m.stack} is not known: a general engine" if m.stack else "a general engine")
    yield f"{eta:.2f} of peak bandwidth, {tau * 1e6:.0f} µs a layer ({engine})"
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
