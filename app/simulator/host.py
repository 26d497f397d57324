"""A simulated provider: what it claims to be, what it really is, and how it behaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.simulator.faults import Fault
from app.simulator.hidden import Hidden
from app.simulator.plan import METRONOME, Habits


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One provider under `/{name}/v1`.

    `model` is what it calls its model; `dialect` is `vllm`, `groq`, `cerebras` or `openrouter`. `key`: the only API key
    that it takes, None takes any. `cache_tokens`: size of the blocks of its prompt cache, 0 has none.
    """

    name: str
    model: str
    hidden: Hidden
    dialect: str = "vllm"
    habits: Habits = METRONOME
    odds: Mapping[Fault, float] = field(default_factory=dict)
    key: str | None = None
    cache_tokens: int = 0
