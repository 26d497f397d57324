"""What a stored verdict is worth later: when nothing has been heard for too long, nothing is known."""

from __future__ import annotations

from datetime import datetime, timedelta

from app.verdict.judge import stale_after_s
from app.verdict.model import Verdict
from app.verdict.upkeep import silent_verdict


def as_of(verdict: Verdict, *, every_s: float, now: datetime) -> Verdict:
    """The verdict while it is fresh; `unknown` for the reason `stale` once no run has renewed it for three intervals.

    So a stopped worker reads as unknown everywhere, without anybody having to write that down.
    """
    limit = verdict.checked_at + timedelta(seconds=stale_after_s(every_s))
    if now <= limit:
        return verdict
    silent = silent_verdict(verdict.target, verdict.location, reason="stale", now=verdict.checked_at)
    return Verdict(
        target=silent.target,
        location=silent.location,
        state=silent.state,
        severity=silent.severity,
        since=limit,
        checked_at=verdict.checked_at,
        expected=verdict.expected,
        ceiling=verdict.ceiling,
        confidence=verdict.confidence,
        basis=verdict.basis,
        assumptions=verdict.assumptions,
        reasons=silent.reasons,
        explanation=(
            f"{verdict.target} from {verdict.location}: its last run is too long ago, so nothing is known of it now; "
            "is the worker of this location running?"
        ),
    )
