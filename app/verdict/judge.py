"""A window of measurements against what is expected: a verdict with its evidence. Pure.

Thresholds are docs/verdicts.md. The order of samples does not matter; time matters only through the window and freshness.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from statistics import median

from app.expectation.model import Confidence, Expectation
from app.targets.model import FitFor, Target, Thresholds
from app.verdict.evidence import Evidence, History, gather
from app.verdict.explain import explain
from app.verdict.findings import Finding, Reference, Standards, findings, standards
from app.verdict.fit import fit
from app.verdict.model import Interval, Severity, State, Verdict
from app.verdict.outbox import Past
from app.verdict.statistics import MEDIAN_FROM, median_interval, percentile_95

STALE_FROM_S = 60.0


def stale_after_s(every_s: float) -> float:
    """Seconds without a run after which nothing is known any more: three intervals, at least a minute."""
    return max(3 * every_s, STALE_FROM_S)


def judge(
    *,
    target: Target,
    location: str,
    past: Past,
    expectation: Expectation | None,
    thresholds: Thresholds,
    fit_for: FitFor,
    now: datetime,
    min_locations: int = 1,
) -> Verdict:
    """What is to be said of a target at a location now.

    Unknown where data is missing, stale or too little; never ok without samples. A flagged state that fewer than
    `min_locations` of the locations with evidence share keeps its name and has severity none.
    """
    window_s = thresholds.window_for(target.every_s)
    since = now - timedelta(seconds=window_s)
    evidence = gather(past.samples, since=since, connection=target.connection)
    before = History(samples=past.baseline, connection=target.connection)
    hold = standards(expectation=expectation, slo=target.slo, past=before, thresholds=thresholds)
    speed = _speed(evidence, thresholds)
    missing = _missing(target, past, evidence, now)
    found = _unknown(missing) if missing is not None else _decide(evidence, speed, hold)
    if found.severity is not Severity.NONE:
        others = [gather(samples, since=since, connection=target.connection) for samples in past.locations.values()]
        found = _weigh_locations(found, others, hold, min_locations)
    reference = found.reference or hold.physics or hold.promise or hold.history
    observed = None if speed is None else speed.value
    previous = past.previous
    verdict = Verdict(
        target=target.name,
        location=location,
        state=found.state,
        severity=found.severity,
        since=previous.since if previous is not None and previous.state is found.state else now,
        checked_at=now,
        observed=observed,
        observed_low=None if speed is None else speed.low,
        observed_high=None if speed is None else speed.high,
        confidence=Confidence.LOW if reference is None else reference.confidence,
        samples=len(evidence.speeds) if speed is not None else max(len(evidence.speeds), len(evidence.ttfts)),
        window_s=window_s,
        basis=found.basis if reference is None else reference.basis,
        assumptions=() if expectation is None else expectation.assumptions,
        reasons=(*found.reasons, *_side_reasons(found, evidence, speed, hold, expectation)),
        fit_for=() if found.state in {State.UNAVAILABLE, State.UNKNOWN} else fit(evidence, speed, fit_for, thresholds),
        ttft_p50_s=median(evidence.ttfts) if len(evidence.ttfts) >= MEDIAN_FROM else None,
        ttft_p95_s=percentile_95(evidence.ttfts),
        baseline=None if hold.level is None else hold.level.value,
        baseline_before=None if hold.level is None else hold.level.before,
        baseline_since=None if hold.level is None else hold.level.since,
    )
    verdict = _compared(verdict, reference, hold.physics)
    return explain(verdict, evidence=evidence, target=target, expectation=expectation)


def _speed(evidence: Evidence, thresholds: Thresholds) -> Interval | None:
    return median_interval(evidence.speeds) if len(evidence.speeds) >= thresholds.min_samples else None


def _missing(target: Target, past: Past, evidence: Evidence, now: datetime) -> str | None:
    """Why nothing can be said now, or None."""
    if target.paused:
        return "paused"
    if evidence.newest is None:
        return "stale" if past.samples else "no_data"
    if (now - evidence.newest).total_seconds() > stale_after_s(target.every_s):
        return "stale"
    return None


def _decide(evidence: Evidence, speed: Interval | None, hold: Standards) -> Finding:
    """The verdict of this location alone."""
    if found := tuple(findings(evidence, speed, hold)):
        also = tuple(f"also_{other.state}" for other in found[1:])
        return replace(found[0], reasons=(*found[0].reasons, *also))
    if speed is not None:
        return Finding(state=State.OK, severity=Severity.NONE, reasons=())
    if len(evidence.ttfts) >= hold.thresholds.min_samples:
        return Finding(state=State.OK, severity=Severity.NONE, reasons=("no_reliable_speed",))
    return _unknown("too_few_samples")


def _unknown(reason: str) -> Finding:
    return Finding(state=State.UNKNOWN, severity=Severity.NONE, reasons=(reason,))


def _weigh_locations(found: Finding, others: Iterable[Evidence], hold: Standards, min_locations: int) -> Finding:
    """The best location separates the network from the provider: what is wrong only here is not the provider's."""
    agreeing, fine = 1, 0
    for other in others:
        speed = _speed(other, hold.thresholds)
        if any(finding.state is found.state for finding in findings(other, speed, hold)):
            agreeing += 1
        elif _can_tell(found.state, other, speed, hold.thresholds):
            fine += 1
    if agreeing + fine == 1:
        return found
    reasons = ("only_here", "network_suspected") if agreeing == 1 else ("seen_from_several_locations",)
    enough = agreeing >= min(min_locations, agreeing + fine)
    return replace(
        found,
        severity=found.severity if enough else Severity.NONE,
        reasons=(*found.reasons, *reasons, *(() if enough else ("too_few_locations",))),
    )


def _can_tell(state: State, evidence: Evidence, speed: Interval | None, thresholds: Thresholds) -> bool:
    """Does a window hold what it takes to see this state, if it were so?"""
    match state:
        case State.UNAVAILABLE:
            return evidence.attempts >= thresholds.min_attempts
        case State.SLOW_FIRST_TOKEN:
            return len(evidence.ttfts) >= thresholds.min_samples
        case _:
            return speed is not None


def _side_reasons(
    found: Finding, evidence: Evidence, speed: Interval | None, hold: Standards, expectation: Expectation | None
) -> tuple[str, ...]:
    """What a reader should know beside the finding, as codes."""
    physics, level = hold.physics, hold.level
    ratio = None if speed is None or physics is None else physics.ratio(speed.value)
    blamed = {"against", "ok"}
    reasons = {
        "tuned_or_speculative": found.state is State.OK and ratio is not None and ratio > hold.thresholds.tuned_above,
        "host_memory_spill_fits": found.state is State.BELOW_EXPECTATION and ratio is not None and 0.1 <= ratio <= 0.25,
        "within_feasible_range": speed is not None and physics is not None and ratio is None,
        "low_confidence": expectation is not None and expectation.confidence is Confidence.LOW,
        "does_not_fit_memory": expectation is not None and expectation.fits is False,
        "no_expectation": physics is None and hold.promise is None and hold.history is None,
        "own_level_fell": level is not None and level.before is not None and level.value < level.before,
        "own_level_rose": level is not None and level.before is not None and level.value > level.before,
        "some_failures": evidence.against > 0,
        "contaminated_samples_left_out": evidence.contaminated > 0,
        "unreliable_samples_left_out": evidence.unreliable > 0,
    }
    kinds = tuple(kind for kind in evidence.kinds if kind not in blamed)
    return (*(reason for reason, holds in reasons.items() if holds), *kinds)


def _compared(verdict: Verdict, reference: Reference | None, physics: Reference | None) -> Verdict:
    """With expected, ceiling and their ratios; inside a feasible range there is no single expected speed."""
    observed = verdict.observed
    ceiling = None if physics is None else physics.ceiling
    expected = ratio = None
    if reference is not None and observed is not None:
        expected, ratio = reference.nearest(observed), reference.ratio(observed)
    elif reference is not None and reference.low == reference.high:
        expected = reference.low
    ceiling_ratio = observed / ceiling if observed is not None and ceiling else None
    return replace(verdict, expected=expected, ceiling=ceiling, ratio=ratio, ceiling_ratio=ceiling_ratio)
