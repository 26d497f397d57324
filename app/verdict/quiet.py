"""When nothing is said: silences, and maintenance windows of local time, each evaluated at an instant. Pure.

A window begins at the first instant that shows its start and lasts to the last that shows its end: so it holds what a person
reads on a clock there, an hour longer or shorter on the nights of a change. Clocks that jump over its start begin it at the
jump; a window that they jump over whole is moved behind the jump, as the work that it stands for is; a day that a place
skipped (Apia, 30 December 2011) has none.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from app.targets.model import Config, Maintenance, Match
from app.verdict.model import Incident

_DAY = timedelta(days=1)


def matches(match: Match, incident: Incident) -> bool:
    """Do all conditions hold? `target` may be a glob."""
    return (
        (match.target is None or fnmatchcase(incident.target, match.target))
        and (match.provider is None or match.provider == incident.provider)
        and (match.severity is None or match.severity == incident.severity)
        and (match.rule is None or match.rule == incident.rule)
        and (match.location is None or match.location == incident.location)
    )


def held_by(incident: Incident, *, config: Config, now: datetime) -> str | None:
    """Why nothing is said of an incident now: `silence`, `maintenance`, or None."""
    if any(each.starts_at <= now < each.ends_at and matches(each.match, incident) for each in config.silences):
        return "silence"
    if any(matches(each.match, incident) and in_window(each, now) for each in config.maintenance):
        return "maintenance"
    return None


def in_window(window: Maintenance, now: datetime) -> bool:
    """Does this instant lie in the window?"""
    today = now.astimezone(ZoneInfo(window.time_zone)).date()
    spans = (span(window, day) for day in (today - _DAY, today))
    return any(begin <= now < end for begin, end in filter(None, spans))


def span(window: Maintenance, day: date) -> tuple[datetime, datetime] | None:
    """The instants, in UTC, from which and to which the window lasts that begins on a local day; None on other days."""
    zone = ZoneInfo(window.time_zone)
    if window.weekday not in {None, day.weekday()} or not _occurs(day, zone):
        return None
    start = datetime.combine(day, window.start)
    to = datetime.combine(day if window.to > window.start else day + _DAY, window.to)
    begin, end = _instant(start, zone, fold=0), _instant(to, zone, fold=1)
    return begin, end if end > begin else begin + (to - start)


def _occurs(day: date, zone: ZoneInfo) -> bool:
    noon = datetime.combine(day, time(12))
    return _shown(noon.replace(tzinfo=zone).astimezone(UTC), zone) == noon


def _instant(wall: datetime, zone: ZoneInfo, *, fold: int) -> datetime:
    """The first (fold 0) or last (fold 1) instant that shows a wall time; the jump, where the clocks jump over it."""
    at = wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)
    if _shown(at, zone) == wall:
        return at
    before = int(wall.replace(tzinfo=zone, fold=1).timestamp())
    after = int(wall.replace(tzinfo=zone, fold=0).timestamp())
    old = datetime.fromtimestamp(before, zone).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return datetime.fromtimestamp(after, UTC)


def _shown(at: datetime, zone: ZoneInfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None)
