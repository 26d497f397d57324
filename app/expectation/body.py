"""An expectation as JSON, and in words for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from app.expectation.model import Basis, Expectation, Explaining, Feasible
from app.units import format_duration

SHOWN = 12
"""Accelerators that a terminal shows of those that explain a speed."""


def expectation_json(e: Expectation) -> dict[str, Any]:
    """The object of `bandwatch expect --json`; a figure that does not exist is null."""
    found = {name: _plain(value) for name, value in asdict(e).items()}
    return {**found, "basis": str(e.basis), "confidence": str(e.confidence)}


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a field holds
    """As JSON has it: tuples are arrays."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def explain(e: Expectation) -> str:
    """The same for a person: figures with units, then every assumption."""
    parts = [
        [_headline(e)],
        [*_bytes(e), *_memory(e)],
        list(_speeds(e)),
        [*_first_token(e), _line("confidence", str(e.confidence))],
        [] if e.feasible is None else list(_explaining(e.feasible)),
        ["Assumptions", *(f"  - {each}" for each in e.assumptions)],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _line(name: str, value: str, note: str = "") -> str:
    return f"  {name:<13}{value:<26}  {note}".rstrip()


def _headline(e: Expectation) -> str:
    count = "" if e.devices is None else f"{e.devices} x "
    machine = "any machine that can hold it" if e.hardware is None else f"{count}{e.hardware}"
    if e.hardware is not None and e.devices is None:
        machine += ", any number" if e.basis is Basis.FEASIBLE_RANGE else ""
    bits = "" if e.bits_per_weight is None else f" ({e.bits_per_weight:.4g} bit)"
    streams = f", {e.batch} streams share a step" if e.batch > 1 else ""
    return f"{e.model_spec}, {e.quantization or 'any format'}{bits}, on {machine}; context {e.context_tokens:,} tokens{streams}"


def _bytes(e: Expectation) -> Iterator[str]:
    if e.weights_bytes is not None and e.weights_bytes_per_token is not None:
        shared = ", by each stream" if e.batch > 1 else ""
        yield _line("weights", f"{size(e.weights_bytes)} resident", f"{size(e.weights_bytes_per_token)} read per token{shared}")
    if e.kv_bytes_per_token is not None:
        each = f"{size(e.kv_bytes_per_token / e.context_tokens)} per token of context" if e.context_tokens else ""
        yield _line("KV cache", f"{size(e.kv_bytes_per_token)} a stream", each)


def _memory(e: Expectation) -> Iterator[str]:
    if e.memory_needed_bytes is not None:
        there = "" if e.memory_bytes is None else f"of {size(e.memory_bytes)}: "
        verdict = {True: "fits", False: "DOES NOT FIT", None: "the number of devices is not said"}[e.fits]
        yield _line("memory", f"{size(e.memory_needed_bytes)} needed", f"{there}{verdict}")


def _speeds(e: Expectation) -> Iterator[str]:
    if e.ceiling_tps is not None:
        yield _line("ceiling", speed(e.ceiling_tps), "no honest deployment passes it without speculation")
    if e.layer_us is not None:
        yield _line("law", f"{e.layer_us:g} µs a layer", "a byte ceiling says nothing on such machines")
    if e.expected_tps is not None:
        together = f"; {e.batch} streams together {speed(e.batch * e.expected_tps)}" if e.batch > 1 else ""
        yield _line("expected", speed(e.expected_tps), f"{format_duration(1 / e.expected_tps)} per token{together}")
    if e.expected_range_tps is not None:
        low, high = e.expected_range_tps
        yield _line("normal", f"{speed(low)} to {speed(high)}")
    if e.red_below_tps is not None and e.amber_below_tps is not None and e.tuned_above_tps is not None:
        yield _line("critical", f"below {speed(e.red_below_tps)}")
        yield _line("warning", f"below {speed(e.amber_below_tps)}")
        yield _line("tuned", f"above {speed(e.tuned_above_tps)}", "or speculative")


def _first_token(e: Expectation) -> Iterator[str]:
    if e.prefill_s is not None:
        yield _line("prefill", _span(e.prefill_s))
    if e.ttft_s is not None:
        floor = "" if e.ttft_floor_s is None else f"computing it takes {format_duration(e.ttft_floor_s)} at the very least"
        yield _line("first token", _span(e.ttft_s), floor)


def _span(seconds: tuple[float, float]) -> str:
    return f"{format_duration(seconds[0])} to {format_duration(seconds[1])}"


def _explaining(found: Feasible) -> Iterator[str]:
    yield f"Observed {speed(found.observed_tps)}"
    if not found.explaining:
        yield _line("deployments", "none", "no machine of the catalogue explains it, with or without speculation")
    yield _line(
        "bandwidth", f"at least {rate(found.least_bandwidth)}", f"with speculation {rate(found.least_bandwidth_speculating)}"
    )
    yield from _precision(found)
    if found.explaining:
        yield _line(
            "deployments",
            f"{found.deployments:,} explain it",
            f"on {len(found.explaining)} accelerators; a set, not an estimate",
        )
    likeliest = sorted(found.explaining, key=lambda each: not each.plain)
    for each in likeliest[:SHOWN]:
        yield f"    {each.hardware:<26} {_deployments(each)}"
    if len(found.explaining) > SHOWN:
        yield f"    and {len(found.explaining) - SHOWN} more accelerators (--json lists all)"


def _precision(found: Feasible) -> Iterator[str]:
    if found.largest_bits is not None:
        yield _line("precision", f"up to {found.largest_bits:.4g} bit", "is plausible without speculation")
    elif found.largest_bits_speculating is not None:
        yield _line("precision", f"up to {found.largest_bits_speculating:.4g} bit", "and only with speculation")
    widest, need = found.bandwidth_by_bits[-1]
    yield _line("", f"{widest:.4g} bit would need {rate(need)}", "for one stream, without speculation")


def _deployments(each: Explaining) -> str:
    plain, drafting = _counts(each.plain), _counts(each.speculating)
    only = [count for count in drafting if count not in plain]
    parts = [", ".join(plain)] if plain else []
    return "; ".join([*parts, *([f"with speculation {', '.join(only)}"] if only else [])])


def _counts(deployments: Sequence[tuple[int | None, str | None]]) -> list[str]:
    counts = sorted({count for count, _ in deployments if count is not None})
    return [f"{count} x" for count in counts] or (["any number"] if deployments else [])


def size(value: float) -> str:
    """Bytes as a person reads them."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale / 10 and (value >= scale or unit == "GB"):
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g} B"


def rate(value: float) -> str:
    """Bytes per second as a person reads them."""
    return f"{value / 1e12:.3g} TB/s" if value >= 1e12 else f"{value / 1e9:.3g} GB/s"


def speed(value: float) -> str:
    """A speed as a person reads it."""
    return f"{value:,.0f} tokens/s" if value >= 1000 else f"{value:.3g} tokens/s"
