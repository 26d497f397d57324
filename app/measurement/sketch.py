"""A distribution in few numbers that can be merged: counts in logarithmic buckets, stored sparse.

Percentiles cannot be averaged, but counts can be added: the sketch of a day is the sum of those of its hours, exactly. A
bucket is 4 % wide (about 58 a decade), and its middle is at most 2 % from any value in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ERROR = 0.02
"""The most that a value taken from the sketch is off, relative to the true one."""
_WIDTH = math.log((1 + ERROR) / (1 - ERROR))
SMALLEST = 1e-9
"""What is smaller than this counts as this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """Counts by bucket (text of its number, as JSON has it), the number of values, their sum, least and greatest."""

    counts: Mapping[str, int] = field(default_factory=dict)
    n: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = 0.0

    @property
    def mean(self) -> float | None:
        """The mean, exactly; None of nothing."""
        return self.total / self.n if self.n else None

    def percentile(self, fraction: float) -> float | None:
        """The value below which `fraction` of the values lie, between the two nearest ranks as `percentile_cont` has it, and
        within `ERROR` of what that says of the values themselves; None of nothing.
        """
        if not self.n:
            return None
        rank = fraction * (self.n - 1)
        low, share = self._at(math.floor(rank)), rank - math.floor(rank)
        return low + (self._at(math.ceil(rank)) - low) * share

    def _at(self, rank: int) -> float:
        """About the value of a rank, from 0."""
        if rank <= 0:
            return self.low
        seen = 0
        for bucket, count in sorted((int(bucket), count) for bucket, count in self.counts.items()):
            seen += count
            if rank < min(seen, self.n - 1):
                return min(max(math.exp((bucket + 0.5) * _WIDTH), self.low), self.high)
        return self.high


def sketch_of(values: Iterable[float]) -> Sketch:
    """The sketch of values that are 0 or more."""
    counts: dict[str, int] = {}
    n, total, low, high = 0, 0.0, math.inf, 0.0
    for value in values:
        bucket = str(math.floor(math.log(max(value, SMALLEST)) / _WIDTH))
        counts[bucket] = counts.get(bucket, 0) + 1
        n, total, low, high = n + 1, total + value, min(low, value), max(high, value)
    return Sketch(counts=counts, n=n, total=total, low=low, high=high)


def merged(sketches: Iterable[Sketch]) -> Sketch:
    """The sketch of all that they hold."""
    counts: dict[str, int] = {}
    n, total, low, high = 0, 0.0, math.inf, 0.0
    for each in sketches:
        for bucket, count in each.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count
        n, total, low, high = n + each.n, total + each.total, min(low, each.low), max(high, each.high)
    return Sketch(counts=counts, n=n, total=total, low=low, high=high)
