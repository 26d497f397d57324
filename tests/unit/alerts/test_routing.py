"""A beginning goes where the routes say unless something holds it; an end goes to exactly those who heard of the beginning."""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from app.alerts.routing import channels_for, speak
from app.targets.model import Channel, ChannelKind, Config, Maintenance, Match, Route, Silence, Thresholds
from app.verdict.model import Change, ChangeKind, Incident, IncidentState, Severity
from app.verdict.outbox import Told
from tests.support.verdicts import NOW, a_target, said

HOUR = timedelta(hours=1)
OPEN = Incident(
    id="i", target="groq/gpt", provider="groq", model="gpt", location="default", rule="below_expectation", severity=Severity.WARNING,
    state=IncidentState.OPEN, opened_at=NOW, updated_at=NOW,
)  # fmt: skip
ALL = Silence(match=Match(), starts_at=NOW - HOUR, ends_at=NOW + HOUR)


def channel(name: str, kind: ChannelKind = ChannelKind.WEBHOOK) -> Channel:
    return Channel(name=name, kind=kind, urls=(f"https://{name}.example/",))


CONFIG = Config(
    channels={"ops": channel("ops"), "am": channel("am", ChannelKind.ALERTMANAGER), "chat": channel("chat")},
    routes=(
        Route(match=Match(severity="critical"), channels=("ops", "am", "ops", "nobody")),
        Route(match=Match(target="groq/*"), channels=("am",)),
        Route(match=Match(rule="regressed"), channels=("chat",)),
    ),
)


def tell(kind: ChangeKind, incident: Incident, config: Config = CONFIG) -> Told:
    numbers = itertools.count()
    change = Change(kind=kind, incident=incident, verdict=said("ok"), at=NOW, summary="s")
    return speak((change,), config=config, now=NOW, new_id=lambda: str(next(numbers)), base_url="http://b")


def heard(told: Told) -> tuple[str, ...]:
    return tuple(each.channel for each in told.announcements)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, ("am",)),
        ({"severity": Severity.CRITICAL}, ("ops", "am")),
        ({"target": "x/y"}, ()),
        ({"target": "x/y", "rule": "regressed"}, ("chat",)),
    ],
)
def test_the_first_route_that_matches_decides(changes: dict[str, str], names: tuple[str, ...]) -> None:
    incident = replace(OPEN, **changes)
    assert channels_for(incident, CONFIG) == names
    told = tell(ChangeKind.OPENED, incident)
    assert heard(told) == names
    assert told.changes[0].incident.channels == names


def test_one_message_a_channel_each_with_an_id_of_its_own_and_the_body_of_the_contract() -> None:
    first, second = tell(ChangeKind.OPENED, replace(OPEN, severity=Severity.CRITICAL)).announcements
    assert (first.id, second.id) == ("msg_0", "msg_1")
    assert first.body["type"] == first.type == "incident.opened"
    assert first.body["data"]["incident"]["id"] == first.incident_id == "i"


def test_an_end_goes_to_those_who_heard_of_the_beginning_whatever_the_routes_say_now() -> None:
    ended = replace(OPEN, state=IncidentState.RESOLVED, resolved_at=NOW, channels=("ops", "gone"))
    assert heard(tell(ChangeKind.RESOLVED, ended)) == ("ops",)
    assert heard(tell(ChangeKind.RESOLVED, replace(ended, channels=()))) == ()
    assert heard(tell(ChangeKind.RESOLVED, ended, replace(CONFIG, silences=(ALL,)))) == ("ops",)


def test_what_grows_worse_is_told_to_who_knows_and_to_who_must_know_now() -> None:
    told = tell(ChangeKind.UPDATED, replace(OPEN, severity=Severity.CRITICAL, channels=("chat",)))
    assert heard(told) == ("chat", "ops", "am")
    assert told.changes[0].incident.channels == ("chat", "ops", "am")


def test_a_reminder_goes_to_who_was_told_and_to_nobody_new() -> None:
    assert heard(tell(ChangeKind.REMINDER, replace(OPEN, channels=("ops",)))) == ("ops",)


def test_what_is_silenced_or_in_maintenance_is_stored_with_the_reason_and_announced_to_nobody() -> None:
    noon = Maintenance(match=Match(), every="daily", start=NOW.time(), to=(NOW + HOUR).time())
    for config, reason in (
        (replace(CONFIG, silences=(ALL,)), "silence"),
        (replace(CONFIG, maintenance=(noon,)), "maintenance"),
    ):
        told = tell(ChangeKind.OPENED, OPEN, config)
        assert told.announcements == ()
        assert (told.changes[0].incident.held, told.changes[0].incident.channels) == (reason, ())
        told = tell(ChangeKind.UPDATED, replace(OPEN, channels=("am",)), config)
        assert (told.changes[0].incident.held, told.changes[0].incident.channels) == (reason, ("am",))
    said_later = tell(ChangeKind.OPENED, replace(OPEN, held="silence"))
    assert (said_later.changes[0].incident.held, heard(said_later)) == (None, ("am",))


def test_what_is_said_waits_for_its_group_but_not_on_the_way_to_an_alertmanager_which_groups_itself() -> None:
    by_channel = {
        each.channel: each for each in tell(ChangeKind.OPENED, replace(OPEN, severity=Severity.CRITICAL)).announcements
    }
    assert (by_channel["ops"].group, by_channel["ops"].not_before) == ("groq", NOW + timedelta(seconds=30))
    assert (by_channel["am"].group, by_channel["am"].not_before) == (None, None)
    for every_s, wait_s in (
        (10.0, 30.0),
        (60.0, 60.0),
        (3600.0, 120.0),
    ):  # others of the provider are probed within an interval
        config = replace(CONFIG, targets=(a_target(every_s=every_s),))
        (told,) = (
            m for m in tell(ChangeKind.OPENED, replace(OPEN, channels=("chat",)), config).announcements if m.channel == "chat"
        )
        assert told.not_before == NOW + timedelta(seconds=wait_s)


def test_without_a_wait_there_are_no_groups() -> None:
    config = replace(CONFIG, thresholds=Thresholds(group_wait_s=0.0), targets=(a_target(),))
    told = tell(ChangeKind.OPENED, replace(OPEN, channels=("chat",)), config)
    assert all(each.group is None and each.not_before is None for each in told.announcements)


def test_the_monitors_own_trouble_waits_for_nobody() -> None:
    incident = replace(OPEN, target="bandwatch", provider="bandwatch", rule="monitor", severity=Severity.CRITICAL)
    assert all(each.group is None and each.not_before is None for each in tell(ChangeKind.OPENED, incident).announcements)
