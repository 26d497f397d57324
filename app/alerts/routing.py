"""Which change goes to which channel: the first route that matches, unless something holds it back. Pure.

A beginning goes where the routes say; an end goes to exactly those who heard of the beginning, silence or not, since
whoever was called out must hear that it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.targets.model import ChannelKind, Config
from app.verdict.body import change_json
from app.verdict.model import MONITOR, Change, ChangeKind, Incident
from app.verdict.outbox import Announcement, Told
from app.verdict.quiet import held_by, matches

LONGEST_GROUP_WAIT_S = 120.0


def channels_for(incident: Incident, config: Config) -> tuple[str, ...]:
    """The channels of the first route that matches; none where no route does."""
    for route in config.routes:
        if matches(route.match, incident):
            return tuple(name for name in dict.fromkeys(route.channels) if name in config.channels)
    return ()


def audience(change: Change, config: Config) -> tuple[str, ...]:
    """Who hears of a change that nothing holds back."""
    told = tuple(name for name in change.incident.channels if name in config.channels)
    if change.kind in {ChangeKind.RESOLVED, ChangeKind.REMINDER}:
        return told
    return tuple(dict.fromkeys((*told, *channels_for(change.incident, config))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """What every announcement of one decision needs."""

    config: Config
    now: datetime
    new_id: Callable[[], str]
    base_url: str

    def tell(self, change: Change) -> tuple[Change, tuple[Announcement, ...]]:
        """The change with what its incident remembers of it, and one message a channel."""
        kind, incident = change.kind, change.incident
        reason = None if kind is ChangeKind.RESOLVED else held_by(incident, config=self.config, now=self.now)
        if reason is not None:
            return replace(change, incident=replace(incident, held=reason)), ()
        names = audience(change, self.config)
        known = names if kind in {ChangeKind.OPENED, ChangeKind.UPDATED} else incident.channels
        heard = replace(change, incident=replace(incident, channels=known, held=None))
        return heard, tuple(self._message(heard, name) for name in names)

    def _group_wait_s(self, target: str) -> float:
        """As configured, and at least an interval of the target: others of its provider are probed within it. 0 is 0."""
        if not self.config.thresholds.group_wait_s:
            return 0.0
        every_s = next((each.every_s for each in self.config.targets if each.name == target), 0.0)
        return max(self.config.thresholds.group_wait_s, min(every_s, LONGEST_GROUP_WAIT_S))

    def _message(self, change: Change, name: str) -> Announcement:
        wait_s = self._group_wait_s(change.incident.target)
        grouped = (
            wait_s > 0
            and change.incident.provider != MONITOR
            and self.config.channels[name].kind is not ChannelKind.ALERTMANAGER  # it groups by itself
        )
        return Announcement(
            id=f"msg_{self.new_id()}",
            channel=name,
            type=f"incident.{change.kind}",
            body=change_json(change, base_url=self.base_url),
            incident_id=change.incident.id,
            created_at=self.now,
            not_before=self.now + timedelta(seconds=wait_s) if grouped else None,
            group=change.incident.provider if grouped else None,
        )


def speak(changes: Sequence[Change], *, config: Config, now: datetime, new_id: Callable[[], str], base_url: str) -> Told:
    """What is stored and announced of changes, in the transaction that stores them."""
    speaker = Speaker(config=config, now=now, new_id=new_id, base_url=base_url)
    told = [speaker.tell(change) for change in changes]
    return Told(
        changes=tuple(change for change, _ in told),
        announcements=tuple(message for _, messages in told for message in messages),
    )
