"""Windows of local time hold what a clock there shows, on the nights of a change too; silences hold for their span."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.targets.model import Config, Maintenance, Match, Silence
from app.verdict.model import Incident, IncidentState, Severity
from app.verdict.quiet import held_by, in_window, matches, span

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
INCIDENT = Incident(
    id="i", target="groq/gpt", provider="groq", model="gpt", location="fra", rule="below_expectation", severity=Severity.WARNING,
    state=IncidentState.OPEN, opened_at=NOW, updated_at=NOW,
)  # fmt: skip
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "Africa/Cairo", "UTC"]


def window(start: str, to: str, zone: str = "Europe/Berlin", *, weekday: int | None = None) -> Maintenance:
    return Maintenance(
        match=Match(), every="daily" if weekday is None else "weekly", weekday=weekday,
        start=time.fromisoformat(start), to=time.fromisoformat(to), time_zone=zone,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("day", "start", "to", "zone", "begin", "hours"),
    [
        ("2026-01-15", "02:00", "03:00", "Europe/Berlin", "2026-01-15T01:00Z", 1),
        ("2026-07-15", "02:00", "03:00", "Europe/Berlin", "2026-07-15T00:00Z", 1),
        ("2026-03-29", "01:00", "05:00", "Europe/Berlin", "2026-03-29T00:00Z", 3),  # spring: 02:00 to 03:00 is not there
        ("2026-03-29", "02:00", "03:00", "Europe/Berlin", "2026-03-29T01:00Z", 1),  # jumped over whole: moved behind
        ("2026-03-29", "02:30", "03:30", "Europe/Berlin", "2026-03-29T01:00Z", 0.5),
        ("2026-03-29", "01:30", "02:30", "Europe/Berlin", "2026-03-29T00:30Z", 0.5),
        ("2026-10-25", "02:00", "03:00", "Europe/Berlin", "2026-10-25T00:00Z", 2),  # autumn: that hour comes twice
        ("2026-10-25", "01:00", "05:00", "Europe/Berlin", "2026-10-24T23:00Z", 5),
        ("2026-10-24", "23:00", "04:00", "Europe/Berlin", "2026-10-24T21:00Z", 6),  # over midnight into the change
        ("2026-03-08", "01:00", "04:00", "America/New_York", "2026-03-08T06:00Z", 2),
        ("2026-11-01", "01:00", "02:00", "America/New_York", "2026-11-01T05:00Z", 2),
        ("2026-10-04", "01:00", "04:00", "Australia/Lord_Howe", "2026-10-03T14:30Z", 2.5),  # half an hour forward
        ("2026-04-05", "01:00", "04:00", "Australia/Lord_Howe", "2026-04-04T14:00Z", 3.5),
        ("2026-04-24", "00:00", "00:30", "Africa/Cairo", "2026-04-23T22:00Z", 0.5),  # midnight itself is jumped over
    ],
)
def test_a_window_holds_what_a_clock_there_shows(day: str, start: str, to: str, zone: str, begin: str, hours: float) -> None:
    found = span(window(start, to, zone), date.fromisoformat(day))
    assert found is not None
    assert (found[0], found[1] - found[0]) == (datetime.fromisoformat(begin), timedelta(hours=hours))


def test_a_day_that_a_place_skipped_has_no_window() -> None:
    assert span(window("02:00", "03:00", "Pacific/Apia"), date(2011, 12, 30)) is None
    assert span(window("02:00", "03:00", "Pacific/Apia"), date(2011, 12, 31)) is not None


def test_a_weekly_window_is_on_its_day_and_over_midnight_belongs_to_the_day_it_began() -> None:
    sunday = window("22:00", "02:00", weekday=6)
    assert in_window(sunday, datetime(2026, 12, 6, 21, 0, tzinfo=UTC))
    assert in_window(sunday, datetime(2026, 12, 7, 0, 59, 59, tzinfo=UTC))
    assert not in_window(sunday, datetime(2026, 12, 7, 1, 0, tzinfo=UTC))
    assert not in_window(sunday, datetime(2026, 12, 7, 21, 0, tzinfo=UTC))


times = st.builds(time, st.integers(0, 23), st.sampled_from([0, 15, 30, 59]))


@given(
    start=times, to=times, zone=st.sampled_from(ZONES),
    at=st.integers(1_293_840_000, 1_893_456_000).map(lambda s: datetime.fromtimestamp(s, UTC)),
)  # fmt: skip
def test_whoever_reads_a_clock_within_the_window_is_in_it(start: time, to: time, zone: str, at: datetime) -> None:
    if start == to:
        return
    shown = at.astimezone(ZoneInfo(zone)).time()
    inside = start <= shown < to if start < to else shown >= start or shown < to
    each = Maintenance(match=Match(), every="daily", start=start, to=to, time_zone=zone)
    if inside and (start < to or shown >= start):
        assert in_window(each, at)
    elif in_window(each, at):  # only around a change of the clocks
        near = {(at + timedelta(hours=h)).astimezone(ZoneInfo(zone)).utcoffset() for h in range(-26, 27)}
        assert inside or len(near) > 1


def test_an_hour_of_quiet_a_day_is_an_hour_a_day_over_a_year() -> None:
    for zone in ZONES:
        each, at, quiet = window("02:00", "03:00", zone), datetime(2026, 1, 1, tzinfo=UTC), 0
        for _ in range(365 * 24 * 2):
            quiet += in_window(each, at)
            at += timedelta(minutes=30)
        assert abs(quiet - 365 * 2) <= 3, zone


def test_all_conditions_of_a_match_must_hold() -> None:
    assert matches(Match(), INCIDENT)
    assert matches(
        Match(target="groq/*", provider="groq", severity="warning", rule="below_expectation", location="fra"), INCIDENT
    )
    for wrong in ({"target": "x/*"}, {"provider": "x"}, {"severity": "critical"}, {"rule": "regressed"}, {"location": "sin"}):
        assert not matches(Match(**wrong), INCIDENT)


def test_what_is_silenced_or_in_maintenance_is_held_and_says_why() -> None:
    hour = timedelta(hours=1)
    silence = Silence(match=Match(provider="groq"), starts_at=NOW, ends_at=NOW + hour)
    assert held_by(INCIDENT, config=Config(silences=(silence,)), now=NOW) == "silence"
    assert held_by(INCIDENT, config=Config(silences=(silence,)), now=NOW + hour) is None
    assert held_by(INCIDENT, config=Config(silences=(silence,)), now=NOW - hour) is None
    noon = window("12:00", "14:00", "UTC")
    assert held_by(INCIDENT, config=Config(maintenance=(noon,)), now=NOW) == "maintenance"
    assert held_by(INCIDENT, config=Config(maintenance=(noon,)), now=NOW - hour) is None
    assert held_by(INCIDENT, config=Config(), now=NOW) is None
