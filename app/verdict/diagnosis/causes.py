"""From signs to causes: naive Bayes over the table below, as theory of the diagnosis has it (docs/diagnosis.md).

The table says how often a sign shows under a cause. It holds judgements, rounded, made from what each cause does to a
stream; the simulated truth (benchmarks/diagnosis_truth.py) checks them on seeds that nothing was chosen by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from app.verdict.diagnosis.model import Cause, Sign, Suspect

ORDINARY: Mapping[str, float] = {
    "slow": 0.05,
    "crawls": 0.01,
    "fast": 0.02,
    "late": 0.05,
    "waits": 0.05,
    "slow_prefill": 0.05,
    "reports_queue": 0.03,
    "uneven": 0.05,
    "sways": 0.05,
    "shares": 0.2,
    "code_faster": 0.3,
    "code_fell": 0.02,
    "cache_hits": 0.5,
    "cache_fell": 0.02,
    "far": 0.03,
    "monitor_late": 0.02,
    "only_here": 0.05,
}
"""Sign -> how often it shows where nothing is wrong."""

LIKELY: Mapping[Cause, Mapping[str, float]] = {
    Cause.NOTHING: {},
    Cause.QUEUE: {"late": 0.95, "waits": 0.95, "reports_queue": 0.9},
    Cause.CONTENTION: {
        "slow": 0.8,
        "crawls": 0.1,
        "uneven": 0.85,
        "sways": 0.7,
        "slow_prefill": 0.5,
        "late": 0.3,
        "waits": 0.3,
        "shares": 0.3,
        "reports_queue": 0.3,
        "code_fell": 0.1,
    },
    Cause.SPILL: {"slow": 0.98, "crawls": 0.9, "slow_prefill": 0.15, "late": 0.2, "waits": 0.2},
    Cause.SLOWER_MACHINE: {"slow": 0.95, "crawls": 0.1, "slow_prefill": 0.7, "late": 0.15, "waits": 0.15},
    Cause.SPECULATION_OFF: {"slow": 0.6, "code_fell": 0.95, "code_faster": 0.02},
    Cause.CACHE_LOST: {"cache_fell": 0.95, "cache_hits": 0.02},
    Cause.NETWORK: {"far": 0.95, "late": 0.9, "waits": 0.3, "uneven": 0.4, "sways": 0.2, "only_here": 0.7},
    Cause.MONITOR: {"monitor_late": 0.95, "late": 0.3, "uneven": 0.3, "sways": 0.3, "slow": 0.2, "only_here": 0.5},
    Cause.SPECULATION: {"fast": 0.8, "code_faster": 0.95},
    Cause.PROMPT_CACHE: {"cache_hits": 0.98, "fast": 0.05},
    Cause.OTHER_DEPLOYMENT: {"fast": 0.9, "code_faster": 0.05},
}
"""Cause -> sign -> how often it shows; what is not named shows as often as ordinarily."""

SLOWING = (
    Cause.NOTHING,
    Cause.QUEUE,
    Cause.CONTENTION,
    Cause.SPILL,
    Cause.SLOWER_MACHINE,
    Cause.SPECULATION_OFF,
    Cause.CACHE_LOST,
    Cause.NETWORK,
    Cause.MONITOR,
)
SPEEDING = (Cause.NOTHING, Cause.SPECULATION, Cause.OTHER_DEPLOYMENT)
TELLS = 0.15
"""Evidence of less than this (in powers of ten) is not worth a word."""


def rank(signs: Sequence[Sign], *, among: Sequence[Cause]) -> tuple[Suspect, ...]:
    """The causes with their probabilities, the likeliest first; each counts as likely as the others beforehand."""
    told = [sign for sign in signs if sign.holds is not None]
    scores = {cause: sum(_weight(cause, sign) for sign in told) for cause in among}
    most = max(scores.values())
    shares = {cause: 10 ** (score - most) for cause, score in scores.items()}
    whole = sum(shares.values())
    suspects = [
        Suspect(
            cause=cause,
            probability=shares[cause] / whole,
            evidence=_texts(cause, told, direction=1),
            against=_texts(cause, told, direction=-1),
        )
        for cause in among
    ]
    return tuple(sorted(suspects, key=lambda s: (-s.probability, among.index(s.cause))))


def _weight(cause: Cause, sign: Sign) -> float:
    """How much more often this is seen under the cause than ordinarily, in powers of ten."""
    ordinary = ORDINARY[sign.name]
    likely = LIKELY[cause].get(sign.name, ordinary)
    return math.log10(likely / ordinary) if sign.holds else math.log10((1 - likely) / (1 - ordinary))


def _texts(cause: Cause, told: Sequence[Sign], *, direction: int) -> tuple[str, ...]:
    """What speaks for a cause (1) or against it (-1), strongest first."""
    weighed = sorted(((direction * _weight(cause, sign), sign.says) for sign in told), reverse=True)
    return tuple(says for weight, says in weighed if weight > TELLS)
