"""What is remembered from window to window, and what it says about each rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.targets.model import Thresholds
from app.verdict.model import Severity, State, Trail, Verdict

STATE_RULES = (
    State.UNAVAILABLE,
    State.ABOVE_CEILING,
    State.BELOW_EXPECTATION,
    State.SLOW_FIRST_TOKEN,
    State.REGRESSED,
)
"""The rules that verdicts open, in the order in which one hides the later ones."""
FLAP_FACTOR = 4
"""A rule that flaps needs at most this many times the healthy windows to close."""
STEPS = 3
"""Windows are taken a third of their length apart."""


def is_taken(trail: Trail, verdict: Verdict, *, every_s: float, thresholds: Thresholds, now: datetime) -> bool:
    """Does this verdict count as a window? Unknown never does; the others do when a third of a window has passed.

    Half an interval of tolerance, so that a run that ends a moment early does not wait for the next one.
    """
    if verdict.state is State.UNKNOWN or (verdict.state is not State.OK and verdict.severity is Severity.NONE):
        return False
    if trail.taken_at is None or now < trail.taken_at:
        return True
    step_s = thresholds.window_for(every_s) / STEPS
    return (now - trail.taken_at).total_seconds() >= step_s - min(every_s, step_s) / 2


def take(trail: Trail, verdict: Verdict, *, every_s: float, thresholds: Thresholds, now: datetime) -> Trail:
    """The trail with this window. After a gap as long as all windows together, what lies before it counts no more."""
    window_s = thresholds.window_for(every_s)
    since = now - timedelta(seconds=thresholds.windows * window_s)
    before = trail.recent if trail.taken_at is not None and trail.taken_at > since else ()
    kept = thresholds.windows * FLAP_FACTOR
    flap_since = now - timedelta(seconds=thresholds.flap_s)
    return replace(
        trail,
        recent=(*before, (str(verdict.state), str(_sure(verdict, thresholds))))[-kept:],
        taken_at=now,
        closed=tuple((rule, at) for rule, at in trail.closed if at > flap_since),
    )


def _sure(verdict: Verdict, thresholds: Thresholds) -> Severity:
    """The severity as an incident counts it: a speed is critically low when its whole interval is, not its median alone.

    Windows overlap, so that chance alone may put two medians in a row below a threshold that lies within the noise.
    """
    high, expected = verdict.observed_high, verdict.expected
    chance = verdict.state is State.BELOW_EXPECTATION and high is not None and expected is not None
    if verdict.severity is Severity.CRITICAL and chance and (high or 0.0) >= thresholds.red_below * (expected or 0.0):
        return Severity.WARNING
    return verdict.severity


def evidence_for(rule: State, recent: Sequence[tuple[str, str]]) -> tuple[Severity, ...]:
    """What the windows that can tell say of a rule, oldest first: the severity where it was broken, none where it held.

    A window's state hides the rules behind it: while calls fail, nothing is known of speed.
    """
    place = STATE_RULES.index(rule)
    told = []
    for state, severity in recent:
        if state == rule:
            told.append(Severity(severity))
        elif state == State.OK or STATE_RULES.index(State(state)) > place:
            told.append(Severity.NONE)
    return tuple(told)


def opens(rule: State, trail: Trail, thresholds: Thresholds) -> Severity | None:
    """The severity to open a rule with, or None: it is broken in the newest window and in `open_on` of the last `windows`."""
    told = evidence_for(rule, trail.recent)[-thresholds.windows :]
    broken = [severity for severity in told if severity is not Severity.NONE]
    if not told or told[-1] is Severity.NONE or len(broken) < thresholds.open_on:
        return None
    return Severity.CRITICAL if broken.count(Severity.CRITICAL) >= thresholds.open_on else Severity.WARNING


def closes(rule: State, trail: Trail, thresholds: Thresholds) -> bool:
    """Is a rule broken in at most `close_on` of the last `windows` that can tell? Each recent close asks for as many more."""
    flaps = sum(closed == rule for closed, _ in trail.closed)
    needed = thresholds.windows * min(FLAP_FACTOR, 1 + flaps)
    told = evidence_for(rule, trail.recent)[-needed:]
    return len(told) == needed and sum(severity is not Severity.NONE for severity in told) <= thresholds.close_on


def severity_now(rule: State, trail: Trail, thresholds: Thresholds, present: Severity) -> Severity:
    """The severity of an open incident: critical on `open_on` critical windows of the last, warning on none, else as it is."""
    told = evidence_for(rule, trail.recent)[-thresholds.windows :]
    critical = told.count(Severity.CRITICAL)
    if critical >= thresholds.open_on:
        return Severity.CRITICAL
    if critical == 0 and len(told) == thresholds.windows and Severity.WARNING in told:
        return Severity.WARNING
    return present
