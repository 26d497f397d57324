"""Reminders come once in their time, and incidents that no run can close are closed with the reason."""

import itertools
from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.verdict.model import MONITOR, ChangeKind, Incident, IncidentState, Severity, State
from app.verdict.upkeep import close, orphans, remind, silent_verdict, watch_monitor
from tests.support.verdicts import NOW, said

OPEN = Incident(
    id="i", target="groq/gpt", provider="groq", model="gpt", location="default", rule="below_expectation", severity=Severity.WARNING,
    state=IncidentState.OPEN, opened_at=NOW, updated_at=NOW,
)  # fmt: skip
HOUR = timedelta(hours=1)


def test_a_reminder_comes_when_nothing_was_said_for_long_and_then_not_again() -> None:
    assert remind(OPEN, said("ok"), remind_s=3600, now=NOW + HOUR - timedelta(seconds=1)) is None
    change = remind(OPEN, said("ok"), remind_s=3600, now=NOW + HOUR)
    assert change is not None
    assert (change.kind, change.incident.updated_at) == (ChangeKind.REMINDER, NOW + HOUR)
    assert "still generates slower than expected after 60 min" in change.summary
    assert remind(change.incident, said("ok"), remind_s=3600, now=NOW + HOUR) is None


def test_who_has_acknowledged_is_not_reminded_and_what_is_over_is_not_either() -> None:
    later = NOW + 9 * HOUR
    assert remind(replace(OPEN, acknowledged_at=NOW), said("ok"), remind_s=3600, now=later) is None
    assert remind(replace(OPEN, state=IncidentState.RESOLVED), said("ok"), remind_s=3600, now=later) is None


@given(st.lists(st.integers(0, 7200), max_size=50))
def test_however_often_and_after_whatever_restarts_one_asks_reminders_keep_their_distance(waits: list[int]) -> None:
    incident, at, said_at = OPEN, NOW, [NOW]
    for wait in waits:
        at += timedelta(seconds=wait)
        if (change := remind(incident, said("ok"), remind_s=3600, now=at)) is not None:
            incident = change.incident
            said_at.append(at)
    assert all(later - earlier >= HOUR for earlier, later in itertools.pairwise(said_at))
    assert at - said_at[-1] < HOUR


def test_incidents_of_targets_that_are_no_longer_watched_are_closed_with_the_reason() -> None:
    incidents = [OPEN, replace(OPEN, id="p", target="paused"), replace(OPEN, id="d", target="deleted"),
                 replace(OPEN, id="r", target="deleted", state=IncidentState.RESOLVED), replace(OPEN, id="m", rule="monitor", target=MONITOR)]  # fmt: skip
    reasons = {"groq/gpt": None, "paused": "target_paused", "deleted": "target_deleted", MONITOR: "target_deleted"}
    found = orphans(incidents, watched=lambda target, _location: reasons[target])
    assert [(incident.id, reason) for incident, reason in found] == [("p", "target_paused"), ("d", "target_deleted")]
    change = close(OPEN, None, reason="target_deleted", now=NOW + HOUR)
    assert (change.kind, change.incident.state, change.incident.resolve_reason) == (
        ChangeKind.RESOLVED,
        IncidentState.RESOLVED,
        "target_deleted",
    )
    assert change.verdict.state is State.UNKNOWN
    assert change.summary == "groq/gpt from default: closed after 60 min (below expectation), target deleted."
    assert close(OPEN, said("ok"), reason="target_paused", now=NOW).verdict.state is State.OK


def test_the_monitors_own_trouble_is_one_incident_and_no_providers() -> None:
    opened = watch_monitor(location="fra", trouble="no_network", opened=None, now=NOW, new_id=lambda: "m")
    assert opened is not None
    assert (opened.incident.rule, opened.incident.target, opened.incident.severity) == ("monitor", MONITOR, Severity.CRITICAL)
    assert opened.summary == "The monitor at fra is in trouble: its network is down, so providers cannot be judged."
    assert watch_monitor(location="fra", trouble="no_network", opened=opened.incident, now=NOW, new_id=lambda: "n") is None
    ended = watch_monitor(location="fra", trouble=None, opened=opened.incident, now=NOW + HOUR, new_id=lambda: "n")
    assert ended is not None
    assert (ended.kind, ended.incident.id, ended.incident.state) == (ChangeKind.RESOLVED, "m", IncidentState.RESOLVED)
    assert watch_monitor(location="fra", trouble=None, opened=None, now=NOW, new_id=lambda: "n") is None


def test_a_silent_verdict_is_unknown() -> None:
    assert silent_verdict("t", "l", reason="target_paused", now=NOW).state is State.UNKNOWN
