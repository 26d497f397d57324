"""The single tests behind a verdict. Each looks at a window's evidence and says what it found, or that there is nothing.

Tests stand in the order of their precedence: what is found first names the verdict, and hides the later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from app.expectation.model import Basis, Confidence, Expectation
from app.targets.model import Slo, Thresholds
from app.verdict.baseline import Level, own_level
from app.verdict.evidence import Evidence, History
from app.verdict.model import Interval, Severity, State
from app.verdict.statistics import exceeds_share

SLACK_S = 1.0
"""TTFT that gateways and queues may add to the longest expected one before it is called slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What observed speed is compared with. A point has `low` = `high`; `ceiling` None: there is none."""

    basis: Basis
    low: float
    high: float
    ceiling: float | None = None
    confidence: Confidence = Confidence.MEDIUM
    flags: bool = True

    def nearest(self, observed: float) -> float | None:
        """The end that an observation outside the range is compared with; None inside a range, where nothing is odd."""
        if observed < self.low or self.low == self.high:
            return self.low
        return self.high if observed > self.high else None

    def ratio(self, observed: float) -> float | None:
        """Observed / expected."""
        nearest = self.nearest(observed)
        return None if nearest is None else observed / nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Standards:
    """Everything that a window is held against."""

    thresholds: Thresholds
    physics: Reference | None = None
    promise: Reference | None = None
    history: Reference | None = None
    level: Level | None = None
    """The target's own level of speed, behind `history`."""
    past: History | None = None
    slo: Slo | None = None
    ttft_expected_s: float | None = None
    """The longest prefill that is expected, without the network."""
    ttft_flags: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a test found: the state and severity it asks for, why, and what the speed was compared with."""

    state: State
    severity: Severity
    reasons: tuple[str, ...]
    reference: Reference | None = None
    basis: Basis | None = None
    """Where there is no speed to compare with."""


def standards(
    *,
    expectation: Expectation | None,
    slo: Slo | None,
    past: History,
    thresholds: Thresholds,
) -> Standards:
    """What to hold a window against, from what is known."""
    physics = reference_of(expectation) if expectation is not None else None
    promise = _point(Basis.SLO, slo.tps_p50, Confidence.HIGH) if slo is not None and slo.tps_p50 is not None else None
    level = own_level(past.speeds())
    prefill = expectation.prefill_s if expectation is not None else None
    return Standards(
        thresholds=thresholds,
        physics=physics,
        promise=promise,
        history=None if level is None else _point(Basis.BASELINE, level.value, Confidence.MEDIUM),
        level=level,
        past=past,
        slo=slo,
        ttft_expected_s=None if prefill is None else prefill[1],
        ttft_flags=expectation is not None and expectation.confidence is not Confidence.LOW and expectation.fits is not False,
    )


def reference_of(expectation: Expectation) -> Reference | None:
    """The speed that physics expects: a point, a range where the deployment is not known, None where it says nothing.

    Low confidence and a model that does not fit its memory as declared never flag.
    """
    ends: tuple[float, float] | None = None
    if expectation.expected_tps is not None:
        ends = (expectation.expected_tps, expectation.expected_tps)
    elif expectation.expected_range_tps is not None:
        ends = expectation.expected_range_tps
    if ends is None or ends[0] <= 0:
        return None
    return Reference(
        basis=expectation.basis,
        low=ends[0],
        high=ends[1],
        ceiling=expectation.ceiling_tps,
        confidence=expectation.confidence,
        flags=expectation.confidence is not Confidence.LOW and expectation.fits is not False,
    )


def findings(evidence: Evidence, speed: Interval | None, hold: Standards) -> Iterator[Finding]:
    """What the tests find in a window, in order of precedence; `speed` None: too few samples to judge it."""
    tests: tuple[Callable[[Evidence, Interval | None, Standards], Finding | None], ...] = (
        _unavailable,
        _above_ceiling,
        _below_expectation,
        _slow_first_token,
        _regressed,
    )
    yield from (found for test in tests if (found := test(evidence, speed, hold)) is not None)


def _point(basis: Basis, value: float, confidence: Confidence) -> Reference:
    return Reference(basis=basis, low=value, high=value, confidence=confidence)


def _unavailable(evidence: Evidence, _speed: Interval | None, hold: Standards) -> Finding | None:
    at = hold.thresholds
    if evidence.attempts < at.min_attempts or evidence.ok / evidence.attempts >= at.unavailable_below:
        return None
    return Finding(
        state=State.UNAVAILABLE,
        severity=Severity.CRITICAL,
        reasons=("unavailable", *(f"error_{name}" for name in evidence.errors)),
    )


def _above_ceiling(_evidence: Evidence, speed: Interval | None, hold: Standards) -> Finding | None:
    physics = hold.physics
    if speed is None or physics is None or not physics.flags or physics.ceiling is None or speed.value <= physics.ceiling:
        return None
    return Finding(
        state=State.ABOVE_CEILING,
        severity=Severity.WARNING,
        reasons=("above_ceiling", "impossible_as_declared"),
        reference=physics,
    )


def _below_expectation(_evidence: Evidence, speed: Interval | None, hold: Standards) -> Finding | None:
    """Physics first; a promise that is broken where physics is content is a finding too, by the same red threshold."""
    if speed is None:
        return None
    at = hold.thresholds
    below = []
    if hold.physics is not None and hold.physics.flags and (ratio := hold.physics.ratio(speed.value)) is not None:
        if ratio < at.red_below:
            below.append((Severity.CRITICAL, "far_below_expectation", hold.physics))
        elif ratio < at.amber_below:
            below.append((Severity.WARNING, "below_expectation", hold.physics))
    if hold.promise is not None and (speed.value < hold.promise.low):
        severity = Severity.CRITICAL if speed.value < at.red_below * hold.promise.low else Severity.WARNING
        below.append((severity, "slo_tps_missed", hold.promise))
    if not below:
        return None
    severity, _, reference = max(below, key=lambda found: found[0] is Severity.CRITICAL)
    reasons = tuple(reason for _, reason, _ in below)
    return Finding(state=State.BELOW_EXPECTATION, severity=severity, reasons=reasons, reference=reference)


def _slow_first_token(evidence: Evidence, _speed: Interval | None, hold: Standards) -> Finding | None:
    at, ttfts = hold.thresholds, evidence.ttfts
    if len(ttfts) < at.min_samples:
        return None
    typical = median(ttfts)
    reasons = []
    severity = Severity.WARNING
    if hold.slo is not None and (limit := hold.slo.ttft_p95_s) is not None:
        over = sum(ttft > limit for ttft in ttfts)
        if exceeds_share(over, len(ttfts)):
            reasons.append("slo_ttft_missed")
            severity = Severity.CRITICAL if typical > limit else severity
    if hold.ttft_expected_s is not None and hold.ttft_flags:
        longest = hold.ttft_expected_s + (median(evidence.round_trips) if evidence.round_trips else 0.0)
        if typical > at.slow_first_token_above * longest and typical > longest + SLACK_S:
            reasons.append("ttft_far_over_expected")
    if _later_than_its_past(typical, hold):
        reasons.append("first_token_later_than_own_past")
    if not reasons:
        return None
    basis = {"slo_ttft_missed": Basis.SLO, "first_token_later_than_own_past": Basis.BASELINE}.get(reasons[0])
    return Finding(state=State.SLOW_FIRST_TOKEN, severity=severity, reasons=tuple(reasons), basis=basis)


def _later_than_its_past(typical: float, hold: Standards) -> bool:
    """The same factor and slack, over the target's own level of TTFT, and outside of its ordinary range.

    The level is looked for only where the slack does not already say no.
    """
    if typical <= SLACK_S or hold.past is None or (level := own_level(hold.past.first_tokens())) is None:
        return False
    return typical > max(hold.thresholds.slow_first_token_above * level.value, level.value + SLACK_S, level.high)


def _regressed(_evidence: Evidence, speed: Interval | None, hold: Standards) -> Finding | None:
    """Clearly slower than its own past: the median by a factor and below the ordinary range of that past, and the whole
    interval of it below the past's median. Where physics has no say, far below is as bad as far below physics.
    """
    past, level = hold.history, hold.level
    if speed is None or past is None or level is None:
        return None
    if speed.value >= min(hold.thresholds.regressed_below * level.value, level.low):
        return None
    if speed.high is not None and speed.high >= level.value:
        return None
    alone = hold.physics is None or not hold.physics.flags
    red = alone and speed.value < hold.thresholds.red_below * level.value
    severity = Severity.CRITICAL if red else Severity.WARNING
    return Finding(state=State.REGRESSED, severity=severity, reasons=("slower_than_own_past",), reference=past)
