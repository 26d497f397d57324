"""Which change goes to which channel: the first route that matches. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase

from app.targets.model import Config, Match
from app.verdict.body import change_json
from app.verdict.model import Change, Incident
from app.verdict.outbox import Announcement


def matches(match: Match, incident: Incident) -> bool:
    """Do all conditions hold? `target` may be a glob."""
    return (
        (match.target is None or fnmatchcase(incident.target, match.target))
        and (match.provider is None or match.provider == incident.provider)
        and (match.severity is None or match.severity == incident.severity)
        and (match.rule is None or match.rule == incident.rule)
        and (match.location is None or match.location == incident.location)
    )


def channels_for(incident: Incident, config: Config) -> tuple[str, ...]:
    """The channels of the first route that matches; none where no route does."""
    for route in config.routes:
        if matches(route.match, incident):
            return tuple(name for name in dict.fromkeys(route.channels) if name in config.channels)
    return ()


def announce(
    changes: Sequence[Change], *, config: Config, now: datetime, new_id: Callable[[], str], base_url: str
) -> tuple[Announcement, ...]:
    """One message per change and channel, to be stored in the transaction of the change."""
    return tuple(
        Announcement(
            id=f"msg_{new_id()}",
            channel=name,
            type=f"incident.{change.kind}",
            body=change_json(change, base_url=base_url),
            incident_id=change.incident.id,
            created_at=now,
        )
        for change in changes
        for name in channels_for(change.incident, config)
    )
