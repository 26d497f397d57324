"""What an open incident needs without a run: its end, a word that was held back, or a reminder. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from app.alerts.routing import speak
from app.targets.model import Config
from app.verdict.advance import CONFIG_RULES
from app.verdict.body import summary
from app.verdict.freshness import as_of
from app.verdict.model import MONITOR, Change, ChangeKind, Incident, State, Verdict
from app.verdict.outbox import Told
from app.verdict.quiet import held_by
from app.verdict.upkeep import close, orphans, remind, silent_verdict, watch_monitor


def why_unwatched(config: Config, target: str, location: str) -> str | None:
    """Why no run of (target, location) will come: `target_deleted`, `target_paused`, `location_removed`; None: one will."""
    found = next((each for each in config.targets if each.name == target), None)
    if found is None:
        return "target_deleted"
    if found.paused:
        return "target_paused"
    return None if location in found.locations else "location_removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tender:
    """Looks after incidents with the configuration and the time of one look."""

    config: Config
    now: datetime
    new_id: Callable[[], str]
    base_url: str

    def tend(self, incident: Incident, verdict: Verdict | None) -> Told | None:
        """What an open incident needs now, if anything. `verdict` is the present one of its target and location."""
        for _, reason in orphans((incident,), watched=lambda target, place: why_unwatched(self.config, target, place)):
            return self._speak(close(incident, verdict, reason=reason, now=self.now))
        if held_by(incident, config=self.config, now=self.now) is not None:
            return None
        if incident.held is not None:
            return self._catch_up(incident, verdict)
        return self._remind(incident, verdict)

    def monitor(self, *, location: str, trouble: str | None, opened: Incident | None) -> Told | None:
        """The monitor's own incident at a location begins, or ends."""
        change = watch_monitor(location=location, trouble=trouble, opened=opened, now=self.now, new_id=self.new_id)
        return None if change is None else self._speak(change)

    def _catch_up(self, incident: Incident, verdict: Verdict | None) -> Told:
        """What was held back is said now, since it still holds."""
        known = verdict or silent_verdict(incident.target, incident.location, reason="no_data", now=self.now)
        kind = ChangeKind.UPDATED if incident.channels else ChangeKind.OPENED
        said = summary(kind, incident, known) if incident.rule != "monitor" else incident.summary
        told = replace(incident, updated_at=self.now, summary=said)
        change = Change(kind=kind, incident=told, verdict=known, at=self.now, summary=said)
        return replace(self._speak(change), on_record=False)

    def _remind(self, incident: Incident, verdict: Verdict | None) -> Told | None:
        """A reminder, if it is due, somebody was told, and it is known that it still holds."""
        known = self._known(incident, verdict)
        if known is None or not incident.channels:
            return None
        change = remind(incident, known, remind_s=self.config.thresholds.remind_s, now=self.now)
        return None if change is None else self._speak(change)

    def _known(self, incident: Incident, verdict: Verdict | None) -> Verdict | None:
        if incident.target == MONITOR:
            return silent_verdict(MONITOR, incident.location, reason="monitor", now=self.now)
        every_s = next(each.every_s for each in self.config.targets if each.name == incident.target)
        if verdict is None or "stale" in as_of(verdict, every_s=every_s, now=self.now).reasons:
            return None
        return None if verdict.state is State.UNKNOWN and incident.rule not in CONFIG_RULES else verdict

    def _speak(self, change: Change) -> Told:
        return speak((change,), config=self.config, now=self.now, new_id=self.new_id, base_url=self.base_url)
