"""Statistics of small designed experiments: exact or robust, without assumptions about the shape of the noise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from statistics import median

from app.verdict.model import Interval

SCALED = 1.4826
"""Makes a median absolute deviation the standard deviation of a normal distribution."""


def shift(differences: Sequence[float]) -> Interval | None:
    """The typical difference of pairs with its 95 % interval: the Hodges-Lehmann estimate (median of all Walsh averages)
    and the interval that the exact Wilcoxon signed-rank test does not reject (Hollander and Wolfe, Nonparametric
    Statistical Methods, sections 3.2 and 3.3). The ends are None below 6 pairs; None without any.
    """
    n = len(differences)
    if n == 0:
        return None
    walsh = sorted((differences[i] + differences[j]) / 2 for i in range(n) for j in range(i, n))
    rank = signed_rank(n)
    low, high = (walsh[rank - 1], walsh[-rank]) if rank else (None, None)
    return Interval(value=median(walsh), low=low, high=high, n=n)


@cache
def signed_rank(n: int) -> int:
    """The largest c with 2 P(T <= c - 1) <= 5 %, T the signed-rank statistic of n pairs without any difference."""
    ways = [1]
    for rank in range(1, n + 1):
        longer = ways + [0] * rank
        for total, count in enumerate(ways):
            longer[total + rank] += count
        ways = longer
    below, c = 0, 0
    while 2 * (below + ways[c]) <= 0.05 * 2**n:
        below += ways[c]
        c += 1
    return c


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """(start, slope) through points by the median of all pairwise slopes (Theil 1950, Sen 1968); None where all x are one."""
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x1 != x2]
    if not slopes:
        return None
    slope = median(slopes)
    return median(y - slope * x for x, y in points), slope


def spread(values: Sequence[float]) -> float | None:
    """The standard deviation as the scaled median absolute deviation has it; None below 3 values."""
    if len(values) < 3:
        return None
    middle = median(values)
    return SCALED * median(abs(value - middle) for value in values)


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Spearman's rho; None below 8 pairs, or where one side does not vary."""
    if len(xs) < 8:
        return None
    a, b = _ranks(xs), _ranks(ys)
    middle = (len(xs) + 1) / 2
    over = sum((i - middle) * (j - middle) for i, j in zip(a, b, strict=True))
    under = sum((i - middle) ** 2 for i in a) * sum((j - middle) ** 2 for j in b)
    return over / float(under**0.5) if under else None


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    last = dict(zip(ordered, range(1, len(ordered) + 1), strict=True))
    first = dict(zip(reversed(ordered), range(len(ordered), 0, -1), strict=True))
    return [(first[value] + last[value]) / 2 for value in values]


def percentile(values: Sequence[float], q: float) -> float:
    """A percentile of at least one value, interpolated between ranks."""
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
