"""What an open incident needs without a run: an end with its reason, the word that was held back, a reminder, or nothing."""

import itertools
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from app.alerts.tending import Tender, why_unwatched
from app.targets.model import Channel, ChannelKind, Config, Match, Route, Silence
from app.verdict.model import MONITOR, ChangeKind, Incident, IncidentState, Severity, State
from app.verdict.outbox import Told
from tests.support.verdicts import NOW, a_target, said

HOUR = timedelta(hours=1)
OPEN = Incident(
    id="i", target="groq/gpt", provider="groq", model="gpt", location="default", rule="below_expectation", severity=Severity.WARNING,
    state=IncidentState.OPEN, opened_at=NOW, updated_at=NOW, channels=("ops",),
)  # fmt: skip
OPS = Channel(name="ops", kind=ChannelKind.WEBHOOK, urls=("https://ops.example/",))
CONFIG = Config(targets=(a_target(),), channels={"ops": OPS}, routes=(Route(channels=("ops",)),))
SLOW = said(State.BELOW_EXPECTATION, Severity.WARNING)


def tender(config: Config = CONFIG, *, now: datetime = NOW) -> Tender:
    numbers = itertools.count()
    return Tender(config=config, now=now, new_id=lambda: str(next(numbers)), base_url="http://b")


def kinds(told: Told | None) -> list[ChangeKind]:
    return [] if told is None else [change.kind for change in told.changes]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (CONFIG, None),
        (replace(CONFIG, targets=()), "target_deleted"),
        (replace(CONFIG, targets=(a_target(paused=True),)), "target_paused"),
        (replace(CONFIG, targets=(a_target(locations=("fra",)),)), "location_removed"),
    ],
)
def test_an_incident_that_no_run_will_close_is_closed_with_the_reason(config: Config, reason: str | None) -> None:
    assert why_unwatched(config, "groq/gpt", "default") == reason
    told = tender(config).tend(OPEN, SLOW)
    if reason is None:
        assert told is None
        return
    assert told is not None
    (change,) = told.changes
    assert (change.kind, change.incident.resolve_reason) == (ChangeKind.RESOLVED, reason)
    assert [each.channel for each in told.announcements] == ["ops"]


def test_what_was_held_back_is_said_when_the_silence_is_over_once_and_leaves_the_timeline_alone() -> None:
    held = replace(OPEN, held="silence", channels=())
    silence = Silence(match=Match(), starts_at=NOW - HOUR, ends_at=NOW + HOUR)
    assert tender(replace(CONFIG, silences=(silence,))).tend(held, SLOW) is None
    told = tender(now=NOW + HOUR).tend(held, said(State.BELOW_EXPECTATION, at=NOW + HOUR))
    assert told is not None
    assert (kinds(told), told.on_record) == ([ChangeKind.OPENED], False)
    assert [each.type for each in told.announcements] == ["incident.opened"]
    after = told.changes[0].incident
    assert (after.held, after.channels) == (None, ("ops",))
    assert tender(now=NOW + HOUR).tend(after, said(State.BELOW_EXPECTATION, at=NOW + HOUR)) is None


def test_a_severity_that_grew_during_a_silence_is_an_update_afterwards() -> None:
    told = tender(now=NOW + HOUR).tend(replace(OPEN, held="maintenance"), None)
    assert kinds(told) == [ChangeKind.UPDATED]


def test_reminders_come_in_their_time_to_who_was_told_while_it_is_known_to_hold() -> None:
    later = NOW + 4 * HOUR
    fresh = said(State.BELOW_EXPECTATION, Severity.WARNING, at=later)
    assert kinds(tender(now=later).tend(OPEN, fresh)) == [ChangeKind.REMINDER]
    assert tender(now=later - timedelta(seconds=1)).tend(OPEN, fresh) is None
    assert tender(now=later).tend(replace(OPEN, channels=()), fresh) is None
    assert tender(now=later).tend(replace(OPEN, acknowledged_at=NOW), fresh) is None
    silence = Silence(match=Match(), starts_at=NOW, ends_at=later + HOUR)
    assert tender(replace(CONFIG, silences=(silence,)), now=later).tend(OPEN, fresh) is None


def test_nobody_is_reminded_of_what_is_not_known_any_more() -> None:
    later = NOW + 9 * HOUR
    assert tender(now=later).tend(OPEN, SLOW) is None  # its worker stopped hours ago
    assert tender(now=later).tend(OPEN, None) is None
    assert tender(now=later).tend(OPEN, said(State.UNKNOWN, at=later)) is None  # rate limited, say


def test_of_a_refused_key_one_is_reminded_although_nothing_else_is_known() -> None:
    later = NOW + 9 * HOUR
    assert kinds(tender(now=later).tend(replace(OPEN, rule="auth"), said(State.UNKNOWN, at=later))) == [ChangeKind.REMINDER]


def test_the_monitors_own_incident_begins_ends_and_is_reminded_of_and_no_target_closes_it() -> None:
    opened = tender().monitor(location="fra", trouble="no_network", opened=None)
    assert opened is not None
    incident = opened.changes[0].incident
    assert (incident.target, incident.rule, incident.channels) == (MONITOR, "monitor", ("ops",))
    assert tender().monitor(location="fra", trouble="no_network", opened=incident) is None
    assert tender(now=NOW + HOUR).tend(incident, None) is None
    reminded = tender(now=NOW + 4 * HOUR).tend(incident, None)
    assert kinds(reminded) == [ChangeKind.REMINDER]
    ended = tender().monitor(location="fra", trouble=None, opened=incident)
    assert kinds(ended) == [ChangeKind.RESOLVED]
    held = replace(incident, held="silence", channels=())
    caught_up = tender().tend(held, None)
    assert caught_up is not None
    assert caught_up.changes[0].summary == incident.summary
