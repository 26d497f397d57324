"""An expectation as JSON, and in words for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from app.expectation.model import Expectation
from app.units import format_duration


def expectation_json(e: Expectation) -> dict[str, Any]:
    """The object of `bandwatch expect --json`; a figure that does not exist is null."""
    found: dict[str, Any] = {}
    for field in fields(e):
        value = getattr(e, field.name)
        found[field.name] = list(value) if isinstance(value, tuple) else value
    return {**found, "basis": str(e.basis), "confidence": str(e.confidence)}


def explain(e: Expectation) -> str:
    """The same for a person: figures with units, then every assumption."""
    return "\n".join(_lines(e))


def _lines(e: Expectation) -> Iterator[str]:
    machine = "any machine that can hold it" if e.hardware is None else f"{e.devices or '?'} x {e.hardware}"
    yield f"{e.model_spec} on {machine}, {e.quantization or 'format unknown'}, {e.context_tokens} tokens of context"
    yield ""
    if e.weights_bytes is not None and e.weights_bytes_per_token is not None:
        yield f"  weights            {_gb(e.weights_bytes)} resident, {_gb(e.weights_bytes_per_token)} read per token"
    if e.kv_bytes_per_token is not None:
        yield f"  KV cache           {_gb(e.kv_bytes_per_token)} read per token"
    if e.memory_needed_bytes is not None:
        there = "" if e.memory_bytes is None else f" of {_gb(e.memory_bytes)}"
        verdict = {True: ", fits", False: ", DOES NOT FIT", None: ""}[e.fits]
        yield f"  memory             {_gb(e.memory_needed_bytes)} needed{there}{verdict}"
    if e.ceiling_tps is not None:
        yield f"  ceiling            {_tps(e.ceiling_tps)}  (no honest deployment passes it without speculation)"
    if e.layer_us is not None:
        yield f"  law                {e.layer_us:g} µs a layer; a byte ceiling says nothing on such machines"
    if e.expected_tps is not None:
        yield f"  expected           {_tps(e.expected_tps)}"
    if e.expected_range_tps is not None:
        yield f"  normal             {_tps(e.expected_range_tps[0])} to {_tps(e.expected_range_tps[1])}"
    if e.red_below_tps is not None and e.amber_below_tps is not None and e.tuned_above_tps is not None:
        yield f"  flags              critical below {_tps(e.red_below_tps)}, warning below {_tps(e.amber_below_tps)}"
        yield f"                     tuned or speculative above {_tps(e.tuned_above_tps)}"
    if e.prefill_s is not None:
        yield f"  prefill            {format_duration(e.prefill_s[0])} to {format_duration(e.prefill_s[1])}"
    yield f"  confidence         {e.confidence}"
    yield ""
    for each in e.assumptions:
        yield f"  - {each}"


def _gb(value: float) -> str:
    return f"{value / 1e9:.3g} GB" if value >= 1e8 else f"{value / 1e6:.3g} MB"


def _tps(value: float) -> str:
    return f"{value:.4g} tokens/s"
