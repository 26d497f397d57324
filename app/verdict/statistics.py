"""Statistics of small windows: exact, free of assumptions about the distribution, and null where samples do not suffice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb
from statistics import median

from app.verdict.model import Interval

MEDIAN_FROM = 5
P95_FROM = 130
CONFIDENCE = 0.95


def median_interval(values: Sequence[float]) -> Interval | None:
    """The median with its 95 % confidence interval from binomial order statistics; None without values.

    The number of values below the true median is Binomial(n, 1/2) whatever the distribution, so that [x(j), x(n+1-j)]
    covers it with probability 1 - 2 P(Bin <= j-1) (Conover, Practical Nonparametric Statistics, section 3.2). The ends are
    None below 6 values, where even the extremes cover less than 95 %.
    """
    if not values:
        return None
    ordered = sorted(values)
    rank = interval_rank(len(ordered))
    low, high = (ordered[rank - 1], ordered[-rank]) if rank else (None, None)
    return Interval(value=median(ordered), low=low, high=high, n=len(ordered))


@cache
def interval_rank(n: int) -> int:
    """The largest j with 2 P(Bin(n, 1/2) <= j - 1) <= 5 %; 0 where there is none."""
    below, rank = 0, 0
    while 2 * (below + comb(n, rank)) <= (1 - CONFIDENCE) * 2**n:
        below += comb(n, rank)
        rank += 1
    return rank


def percentile_95(values: Sequence[float]) -> float | None:
    """The 95th percentile, interpolated between ranks; None below 130 values."""
    if len(values) < P95_FROM:
        return None
    ordered = sorted(values)
    position = 0.95 * (len(ordered) - 1)
    index = int(position)
    return ordered[index] + (position - index) * (ordered[index + 1] - ordered[index])


@cache
def exceeds_share(over: int, n: int, *, share: float = 0.05, alpha: float = 0.05) -> bool:
    """Do `over` of `n` show that more than `share` of all lie over a limit? An exact one-sided binomial test at `alpha`.

    So a p95 can be held to its promise from five samples on, long before it can be estimated: 2 of 5 suffice, 1 does not.
    """
    fewer = sum(comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(over))
    return over > 0 and 1 - fewer < alpha
