"""A target's own history as an expectation that survives regime changes. Pure.

Providers change hardware, batch limits and drafts, and stay changed: a median over a week calls a slow-down of last Monday
news until Friday. So the history is cut where its level changed, and the latest regime that lasted counts.

- Cuts: Pettitt's rank test for one change point (Applied Statistics 28(2), 1979, 126-135), applied again to both parts
  (binary segmentation: Vostrikova, Soviet Mathematics Doklady 24, 1981). Ranks do not care for outliers or for the shape
  of the noise, and daily cycles of a week cancel in them. A cut is believed from p < 0.001 and 10 % of change on.
- A regime counts once it has lasted a day, so that a daily cycle lies inside it, and has 20 samples. What is younger is an
  excursion: it is what `regressed` speaks of, and stays out. Where nothing has lasted, all of the history counts.
- Its level is the median. Its ordinary range is where the medians of five samples each (the least that a window is made of)
  have lain, 5 % beyond, but no further out than three scaled MADs, in logarithms (Hampel's rule; Leys et al., J. Exp. Soc.
  Psychology 49(4), 2013). So a target that swings by day and night is not called regressed each morning.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

BASELINE_FROM = 20
"""Samples before a history is an expectation, and before a regime is one."""
SETTLED = timedelta(days=1)
"""How long a new level must last before it is the target's own."""
CUT_P = 0.001
CUT_RATIO = 1.10
CUT_SAMPLES = 8
"""The shortest part that a cut leaves."""
BLOCK = 5
MARGIN = math.log(1.05)
"""How far beyond what has been seen is still ordinary."""
SCALED_MADS = 3 * 1.4826
"""Three standard deviations of a normal distribution, by its median absolute deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Where a figure of a target ordinarily lies: its median since `since`, and its ordinary range."""

    value: float
    low: float
    high: float
    since: datetime
    samples: int
    before: float | None = None
    """The median before `since`; None where the history shows no other level."""


def own_level(points: Sequence[tuple[datetime, float]]) -> Level | None:
    """The level of a history of positive figures, in any order; None below `BASELINE_FROM` of them or a day."""
    ordered = sorted(points)
    if len(ordered) < BASELINE_FROM or ordered[-1][0] - ordered[0][0] < SETTLED:
        return None
    logs = [math.log(value) for _, value in ordered]
    start, end = _counts(ordered, (0, *change_points(logs), len(logs)))
    held = logs[start:end]
    middle = median(held)
    blocks = sorted(sorted(held[at : at + BLOCK])[BLOCK // 2] for at in range(0, len(held) - BLOCK + 1, BLOCK))
    spread = SCALED_MADS * median(abs(block - middle) for block in blocks)
    return Level(
        value=median(value for _, value in ordered[start:end]),
        low=math.exp(max(middle - spread, blocks[0] - MARGIN)),
        high=math.exp(min(middle + spread, blocks[-1] + MARGIN)),
        since=ordered[start][0],
        samples=len(held),
        before=median(value for _, value in ordered[:start]) if start else None,
    )


def _counts(ordered: Sequence[tuple[datetime, float]], bounds: Sequence[int]) -> tuple[int, int]:
    """The latest regime that lasted, as indexes; all of the history where none did."""
    last = len(ordered) - 1
    for start, end in reversed(tuple(pairwise(bounds))):
        if end - start >= BASELINE_FROM and ordered[min(end, last)][0] - ordered[start][0] >= SETTLED:
            return start, end
    return 0, len(ordered)


def change_points(values: Sequence[float], *, offset: int = 0) -> Iterator[int]:
    """Where the level changes: indexes of the first value of each new regime, ascending. Values are logarithms."""
    cut = change_point(values)
    if cut is not None:
        yield from change_points(values[:cut], offset=offset)
        yield offset + cut
        yield from change_points(values[cut:], offset=offset + cut)


def change_point(values: Sequence[float]) -> int | None:
    """The one most likely change of level, or None: Pettitt's K = max |U(t)| with p = 2 exp(-6 K^2 / (n^3 + n^2)),
    U(t) = 2 (sum of the ranks of the first t values) - t (n + 1).
    """
    n = len(values)
    if n < 2 * CUT_SAMPLES:
        return None
    at, most, total = 0, 0.0, 0.0
    for index, rank in enumerate(_ranks(values), start=1):
        total += 2 * rank - (n + 1)
        if abs(total) > most:
            at, most = index, abs(total)
    if 2 * math.exp(-6 * most * most / (n**3 + n**2)) >= CUT_P or not CUT_SAMPLES <= at <= n - CUT_SAMPLES:
        return None
    return at if abs(median(values[:at]) - median(values[at:])) >= math.log(CUT_RATIO) else None


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1 on; equal values share the middle of theirs."""
    ordered = sorted(values)
    last = dict(zip(ordered, range(1, len(ordered) + 1), strict=True))
    first = dict(zip(reversed(ordered), range(len(ordered), 0, -1), strict=True))
    return [(first[value] + last[value]) / 2 for value in values]
