"""What happens to incidents without a run: reminders, ends of targets that are no longer watched, and the monitor's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from app.verdict.body import summary
from app.verdict.model import MONITOR, Change, ChangeKind, Incident, IncidentState, Severity, State, Verdict


def silent_verdict(target: str, location: str, *, reason: str, now: datetime) -> Verdict:
    """A verdict of a target of which nothing is known, for the reason given."""
    return Verdict(
        target=target,
        location=location,
        state=State.UNKNOWN,
        severity=Severity.NONE,
        since=now,
        checked_at=now,
        reasons=(reason,),
        explanation=f"{target} from {location} cannot be judged: {reason.replace('_', ' ')}.",
    )


def remind(incident: Incident, verdict: Verdict, *, remind_s: float, now: datetime) -> Change | None:
    """A reminder where one is due: open, not acknowledged, and nothing said for `remind_s`.

    The time of the last word is the incident's `updated_at`, so reminders survive restarts and never come twice.
    """
    quiet_s = (now - incident.updated_at).total_seconds()
    if incident.state is not IncidentState.OPEN or incident.acknowledged_at is not None or quiet_s < remind_s:
        return None
    said = summary(ChangeKind.REMINDER, incident, replace(verdict, checked_at=now))
    told = replace(incident, updated_at=now, summary=said)
    return Change(kind=ChangeKind.REMINDER, incident=told, verdict=verdict, at=now, summary=said)


def close(incident: Incident, verdict: Verdict | None, *, reason: str, now: datetime) -> Change:
    """The end of an incident whose target is no longer watched: `target_deleted`, `target_paused`, `location_removed`."""
    ended = replace(incident, state=IncidentState.RESOLVED, resolved_at=now, resolve_reason=reason, updated_at=now)
    last = verdict or silent_verdict(incident.target, incident.location, reason=reason, now=now)
    said = summary(ChangeKind.RESOLVED, ended, last)
    return Change(kind=ChangeKind.RESOLVED, incident=replace(ended, summary=said), verdict=last, at=now, summary=said)


def orphans(incidents: Iterable[Incident], *, watched: Callable[[str, str], str | None]) -> tuple[tuple[Incident, str], ...]:
    """Open incidents that no run will ever close, each with the reason; `watched` answers it for (target, location), or
    None where runs go on.
    """
    found = [
        (incident, watched(incident.target, incident.location))
        for incident in incidents
        if incident.state is IncidentState.OPEN and incident.rule != "monitor"
    ]
    return tuple((incident, reason) for incident, reason in found if reason is not None)


_WORDS = {
    "no_network": "its network is down, so providers cannot be judged",
    "loop_late": "its event loop is late, so its measurements are spoiled; give it a core of its own, or fewer targets",
    "no_worker": "no worker has been heard of, so nothing is probed; start one for this location",
    "channel_fails": "it has taken no announcement for a while; look at its deliveries",
    "channel_disabled": "its receiver answered 410 Gone, so it is disabled; test it or replace it to use it again",
}
"""Reason codes of the monitor's own trouble, in words that help."""


def watch_monitor(
    *, location: str, trouble: str | None, opened: Incident | None, now: datetime, new_id: Callable[[], str]
) -> Change | None:
    """The monitor's own incident at a location, or at a channel (`channel:NAME`): one while it is in trouble, none of any
    provider. `trouble` is a reason code of `_WORDS`; None is healthy.
    """
    verdict = silent_verdict(MONITOR, location, reason=trouble or "recovered", now=now)
    if trouble is not None and opened is None:
        incident = Incident(
            id=new_id(),
            target=MONITOR,
            provider=MONITOR,
            model="",
            location=location,
            rule="monitor",
            severity=Severity.CRITICAL,
            state=IncidentState.OPEN,
            opened_at=now,
            updated_at=now,
            summary=f"The monitor at {location} is in trouble: {_WORDS.get(trouble, trouble)}.",
        )
        return Change(kind=ChangeKind.OPENED, incident=incident, verdict=verdict, at=now, summary=incident.summary)
    if trouble is None and opened is not None:
        ended = replace(
            opened,
            state=IncidentState.RESOLVED,
            resolved_at=now,
            updated_at=now,
            resolve_reason="recovered",
            summary=f"The monitor at {location} is well again.",
        )
        return Change(kind=ChangeKind.RESOLVED, incident=ended, verdict=verdict, at=now, summary=ended.summary)
    return None
