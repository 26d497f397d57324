"""From verdict to incidents: a state machine with hysteresis whose memory is the `Trail`, stored with the verdict. Pure.

Opens once, on `open_on` of the last `windows`; closes on `close_on` of them; unknown does neither. Configuration rules
(a refused key, an unknown model …) follow single runs, since they are facts and not statistics (docs: verdicts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.measurement.model import Outcome
from app.measurement.window import Sample
from app.targets.model import Target, Thresholds
from app.verdict.body import summary
from app.verdict.evidence import kind_of
from app.verdict.model import Advance, Change, ChangeKind, Incident, IncidentState, Severity, State, Trail, Verdict
from app.verdict.outbox import Past
from app.verdict.trail import STATE_RULES, closes, is_taken, opens, severity_now, take

CONFIG_RULES = ("auth", "not_found", "bad_request", "quota", "budget")
"""Ours to fix: they never count against the provider."""
CONFIG_RUNS = 2
"""Runs in a row with the same configuration fault before it is announced."""
REGIME_SLACK = timedelta(hours=6)
"""A new level begins this long before its incident at most; an old one is 8 hours old before it can be missed."""
_SERVED = frozenset({Outcome.OK, Outcome.CONTENT_FILTER, Outcome.TRUNCATED, Outcome.STALLED, Outcome.EMPTY})


@dataclass(frozen=True, slots=True)
class _Step:
    """What every decision of one call needs."""

    target: Target
    verdict: Verdict
    now: datetime
    new_id: Callable[[], str]

    def open(self, rule: str, severity: Severity) -> Change:
        """A new incident."""
        incident = Incident(
            id=self.new_id(),
            target=self.target.name,
            provider=self.target.provider.name,
            model=self.target.model,
            location=self.verdict.location,
            rule=rule,
            severity=severity,
            state=IncidentState.OPEN,
            opened_at=self.now,
            updated_at=self.now,
        )
        return self.change(ChangeKind.OPENED, incident)

    def change(self, kind: ChangeKind, incident: Incident) -> Change:
        """A change with its sentence, which the incident keeps."""
        text = summary(kind, incident, self.verdict)
        told = replace(incident, updated_at=self.now, summary=text)
        return Change(kind=kind, incident=told, verdict=self.verdict, at=self.now, summary=text)

    def resolve(self, incident: Incident, reason: str) -> Change:
        """The end of an incident."""
        ended = replace(incident, state=IncidentState.RESOLVED, resolved_at=self.now, resolve_reason=reason)
        return self.change(ChangeKind.RESOLVED, ended)


def advance(
    *,
    target: Target,
    verdict: Verdict,
    past: Past,
    thresholds: Thresholds,
    now: datetime,
    new_id: Callable[[], str],
) -> Advance:
    """What becomes of the incidents of a (target, location) with this verdict. Storing the result makes it exactly once:
    the same call with the stored trail and incidents changes nothing more.
    """
    step = _Step(target, verdict, now, new_id)
    trail = past.trail
    changes: list[Change] = []
    if is_taken(trail, verdict, every_s=target.every_s, thresholds=thresholds, now=now):
        trail = take(trail, verdict, every_s=target.every_s, thresholds=thresholds, now=now)
        changes += _follow_windows(step, trail, past.open_incidents, thresholds)
    changes += _follow_runs(step, past.samples, past.open_incidents)
    closed = tuple((c.incident.rule, now) for c in changes if c.kind is ChangeKind.RESOLVED and c.incident.rule in STATE_RULES)
    return Advance(
        trail=replace(trail, closed=(*trail.closed, *closed)),
        incidents=tuple(change.incident for change in changes),
        changes=tuple(changes),
    )


def _follow_windows(step: _Step, trail: Trail, open_incidents: Sequence[Incident], thresholds: Thresholds) -> Iterator[Change]:
    for rule in STATE_RULES:
        incident = _of(rule, open_incidents)
        if incident is None:
            if (severity := opens(rule, trail, thresholds)) is not None:
                yield step.open(rule, severity)
        elif closes(rule, trail, thresholds):
            yield step.resolve(incident, "settled_at_new_level" if _settled(incident, step.verdict) else "recovered")
        elif (severity := severity_now(rule, trail, thresholds, incident.severity)) is not incident.severity:
            yield step.change(ChangeKind.UPDATED, replace(incident, severity=severity))


def _follow_runs(step: _Step, samples: Sequence[Sample], open_incidents: Sequence[Incident]) -> Iterator[Change]:
    """Configuration rules: open on two runs in a row, close on the first run that the provider served."""
    told = [word for sample in sorted(samples, key=lambda sample: sample.started_at) if (word := _tell(sample)) is not None]
    for rule in CONFIG_RULES:
        incident = _of(rule, open_incidents)
        if incident is None:
            if told[-CONFIG_RUNS:] == [rule] * CONFIG_RUNS:
                yield step.open(rule, Severity.WARNING)
        elif told and told[-1] != rule and told[-1] in {"served", "budget"}:
            yield step.resolve(incident, "recovered")


def _settled(incident: Incident, verdict: Verdict) -> bool:
    """Does the slow-down that opened this incident now count as the target's own level, so that nothing has recovered?"""
    since = verdict.baseline_since
    return incident.rule == State.REGRESSED and since is not None and since > incident.opened_at - REGIME_SLACK


def _tell(sample: Sample) -> str | None:
    """What a run says of the configuration: a rule that it breaks, that it was served, or nothing."""
    kind = kind_of(sample)
    if kind in CONFIG_RULES:
        return kind
    return "served" if sample.outcome in _SERVED else None


def _of(rule: str, incidents: Sequence[Incident]) -> Incident | None:
    return next((incident for incident in incidents if incident.rule == rule), None)
