"""Verdicts, incidents and what is announced of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.expectation.model import Basis, Confidence


class State(StrEnum):
    """What is said of a target at a location. Unknown is a state; it is never ok."""

    OK = "ok"
    BELOW_EXPECTATION = "below_expectation"
    SLOW_FIRST_TOKEN = "slow_first_token"
    REGRESSED = "regressed"
    ABOVE_CEILING = "above_ceiling"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """How loudly."""

    NONE = "none"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its confidence interval: `value` (median), `low`, `high` at 95 %, from `n` samples."""

    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is said of one target at one location, with its evidence. Speeds in tokens per second of one stream."""

    target: str
    location: str
    state: State
    severity: Severity
    since: datetime
    checked_at: datetime
    observed: float | None = None
    observed_low: float | None = None
    observed_high: float | None = None
    expected: float | None = None
    ceiling: float | None = None
    ratio: float | None = None
    """observed / expected."""
    ceiling_ratio: float | None = None
    """observed / ceiling."""
    confidence: Confidence = Confidence.LOW
    samples: int = 0
    window_s: float = 0.0
    basis: Basis | None = None
    assumptions: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """Machine-readable reason codes."""
    explanation: str = ""
    fit_for: tuple[str, ...] = ()
    ttft_p50_s: float | None = None
    ttft_p95_s: float | None = None
    baseline: float | None = None
    """The target's own level of speed."""
    baseline_before: float | None = None
    """The level before it, where the history shows another."""
    baseline_since: datetime | None = None


class IncidentState(StrEnum):
    """Open or resolved."""

    OPEN = "open"
    RESOLVED = "resolved"


MONITOR = "bandwatch"
"""Stands as target and provider of the monitor's own incidents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A spell of one rule being broken at one (target, location). `rule` is the verdict's state that opened it, or a
    configuration rule (`auth`, `not_found`, `bad_request`, `quota`, `budget`, `monitor`).
    """

    id: str
    target: str
    provider: str
    model: str
    location: str
    rule: str
    severity: Severity
    state: IncidentState
    opened_at: datetime
    updated_at: datetime
    resolved_at: datetime | None = None
    acknowledged_at: datetime | None = None
    resolve_reason: str | None = None
    summary: str = ""
    channels: tuple[str, ...] = ()
    """Who has been told of it: they hear of its end, and nobody else does."""
    held: str | None = None
    """Why it has not been told as it stands now: `silence` or `maintenance`; it is when they end."""


class ChangeKind(StrEnum):
    """What happened to an incident; the webhook's `type` is `incident.` + this."""

    OPENED = "opened"
    UPDATED = "updated"
    REMINDER = "reminder"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One step of an incident's life, to be stored and announced in the same transaction."""

    kind: ChangeKind
    incident: Incident
    verdict: Verdict
    at: datetime
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """What `advance` remembers between checks of one (target, location): the states of the last windows, newest last."""

    recent: tuple[tuple[str, str], ...] = ()
    """(state, severity) of the last windows that carried evidence."""
    taken_at: datetime | None = None
    """When the newest of them was taken; the next is taken a third of a window later."""
    closed: tuple[tuple[str, datetime], ...] = ()
    """(rule, when) of the last incidents that closed: a rule that flaps takes longer to close again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """What `advance` decided: the incidents as they now are, what to announce, and what to remember."""

    trail: Trail
    incidents: tuple[Incident, ...] = ()
    changes: tuple[Change, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
