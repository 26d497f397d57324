"""Two-parameter fits of `t = bytes / (eta BW) + layers tau`, and what is left when a device or a stack is held out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from app.expectation.constants import ALL_REDUCE_DEFAULT_S, ALL_REDUCE_S
from benchmarks.calibration.rows import Judged

HUBER = 1.345
ROUNDS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """eta (1) and tau (s a layer); residual: robust relative standard deviation."""

    eta: float
    tau: float
    residual: float
    n: int

    def time_s(self, row: Judged) -> float:
        """Seconds per token that the line gives."""
        bytes_s, layers, reduce_s = terms(row)
        return bytes_s / self.eta + layers * self.tau + reduce_s


def terms(row: Judged) -> tuple[float, int, float]:
    """Seconds of the bytes at peak bandwidth, layers, and seconds of all-reduces of one step."""
    m = row.known
    reduce = ALL_REDUCE_S.get(m.hardware.id, ALL_REDUCE_DEFAULT_S) if m.lanes > 1 else 0.0
    return m.step / (m.lanes * m.hardware.bandwidth), m.model.layers, 2 * reduce * m.model.layers


def fit(rows: Sequence[Judged]) -> Line:
    """Huber regression on the relative error, by reweighting; eta at most 1.2, tau at least 0."""
    points = [(*terms(row), 1 / row.measured) for row in rows]
    weights = [1.0] * len(points)
    slope, tau = 1 / 0.8, 60e-6
    spread = 0.0
    for _ in range(ROUNDS):
        slope, tau = _least_squares(points, weights)
        errors = [(b * slope + layers * tau + r) / t - 1 for b, layers, r, t in points]
        spread = 1.4826 * median(abs(e) for e in errors) or 1e-9
        weights = [min(1.0, HUBER * spread / abs(e)) if e else 1.0 for e in errors]
    return Line(eta=1 / slope, tau=tau, residual=spread, n=len(points))


def _least_squares(points: Sequence[tuple[float, int, float, float]], weights: Sequence[float]) -> tuple[float, float]:
    xx = xy = yy = xt = yt = 0.0
    for (b, layers, r, t), w in zip(points, weights, strict=True):
        x, y, z = b / t, layers / t, 1 - r / t
        xx, xy, yy = xx + w * x * x, xy + w * x * y, yy + w * y * y
        xt, yt = xt + w * x * z, yt + w * y * z
    det = xx * yy - xy * xy
    if det <= 1e-12 * xx * yy:
        return xt / xx, 0.0
    slope, tau = (xt * yy - yt * xy) / det, (yt * xx - xt * xy) / det
    return (max(slope, 1 / 1.2), tau) if tau > 0 else (xt / xx, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Rows predicted by a line fitted without their group."""

    by: str
    groups: int
    ratios: tuple[float, ...]
    """Measured over predicted speed."""

    @property
    def error(self) -> float:
        """Median |log error|."""
        return median(abs(math.log(r)) for r in self.ratios)

    @property
    def error_p90(self) -> float:
        return quantile([abs(math.log(r)) for r in self.ratios], 0.9)

    def share_below(self, limit: float) -> float:
        return sum(r < limit for r in self.ratios) / len(self.ratios)


def hold_out(rows: Iterable[Judged], *, by: str, key: Callable[[Judged], str]) -> HeldOut:
    """Each group predicted by a line that never saw it."""
    groups: defaultdict[str, list[Judged]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    ratios: list[float] = []
    for name, held in groups.items():
        line = fit([row for other, seen in groups.items() if other != name for row in seen])
        ratios += [row.measured * line.time_s(row) for row in held]
    return HeldOut(by=by, groups=len(groups), ratios=tuple(ratios))


def quantile(values: Sequence[float], p: float) -> float:
    """Linear interpolation between the closest ranks."""
    ordered = sorted(values)
    place = p * (len(ordered) - 1)
    low = int(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])
