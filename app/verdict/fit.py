"""What a target is good enough for, by stated thresholds."""

from __future__ import annotations

from app.targets.model import FitFor, Thresholds
from app.verdict.evidence import Evidence
from app.verdict.model import Interval
from app.verdict.statistics import exceeds_share


def fit(evidence: Evidence, speed: Interval | None, limits: FitFor, thresholds: Thresholds) -> tuple[str, ...]:
    """`voice` (TTFT p95), `interactive_chat`, `coding_agents`, `long_generation` (median speed), each where it holds.

    The p95 holds where at most one in twenty lies over the limit and no test says otherwise.
    """
    over = sum(ttft > limits.voice_ttft_p95_s for ttft in evidence.ttfts)
    enough = len(evidence.ttfts) >= thresholds.min_samples
    voice = enough and over * 20 <= len(evidence.ttfts) and not exceeds_share(over, len(evidence.ttfts))
    tps = 0.0 if speed is None else speed.value
    fits = {
        "voice": voice,
        "interactive_chat": tps > limits.chat_tps,
        "coding_agents": tps > limits.coding_tps,
        "long_generation": tps > limits.long_generation_tps,
    }
    return tuple(name for name, holds in fits.items() if holds)
