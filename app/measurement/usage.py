"""Token counts out of every usage object that a stream brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What usage says, as it says it; `output_tokens` is ours: completion, with reasoning that was left out of it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    notes: tuple[str, ...] = ()


def count(usages: Sequence[Mapping[str, Any]]) -> Counts:
    """The counts of the last usage object that has any: usage is cumulative or repeated, never a part to be summed."""
    if not usages:
        return Counts(notes=("no_usage",))
    usage = next((u for u in reversed(usages) if _whole(u.get("completion_tokens")) is not None), usages[-1])
    prompt, completion = _whole(usage.get("prompt_tokens")), _whole(usage.get("completion_tokens"))
    total = _whole(usage.get("total_tokens"))
    reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    if cached is None:
        cached = next(
            (n for key in ("prompt_cache_hit_tokens", "num_cached_tokens") if (n := _whole(usage.get(key))) is not None), None
        )
    notes: set[str] = set()
    output = completion
    if completion == 0 and not reasoning:
        notes.add("usage_zero")
        output = None
    elif completion is None:
        notes.add("no_usage")
    elif reasoning and total is not None and prompt is not None and total == prompt + completion + reasoning:
        output = completion + reasoning
        notes.add("reasoning_outside_completion")
    elif reasoning and reasoning > completion:
        notes.add("usage_contradictory")
    return Counts(
        prompt_tokens=prompt,
        completion_tokens=completion,
        reasoning_tokens=reasoning,
        cached_tokens=cached,
        output_tokens=output,
        notes=tuple(sorted(notes)),
    )


def _detail(usage: Mapping[str, Any], details: str, name: str) -> int | None:
    holder = usage.get(details)
    inner = _whole(holder.get(name)) if isinstance(holder, Mapping) else None
    return inner if inner is not None else _whole(usage.get(name))


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < 1e15 else None
