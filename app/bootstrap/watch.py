"""The watch: what happens to incidents without a run, and the monitor's own. Any number may keep it; each decision is made
once, in a transaction that looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import structlog

from app.alerts.tending import Tender
from app.clock import Clock
from app.storage.incidents import Incidents
from app.storage.outbox import Outbox
from app.storage.processes import Beat, Processes
from app.targets.model import Config
from app.verdict.model import MONITOR, Incident, Verdict
from app.verdict.outbox import Told

log = structlog.get_logger()

ABSENT_S = 120.0
"""A location without a worker for this long is in trouble; a restart is shorter."""
WELL_S = 60.0
"""How long a location must be well before its trouble is over."""


def trouble_of(beats: Iterable[Beat], location: str) -> str | None:
    """What the workers of a location say of themselves: a reason, None when all are well, `no_worker` where none is alive."""
    workers = [beat for beat in beats if beat.location == location and "worker" in beat.role.split("+")]
    if not workers:
        return "no_worker"
    return next((str(beat.stats["trouble"]) for beat in workers if beat.stats.get("trouble")), None)


@dataclass(slots=True)
class _Since:
    """Since when each place is as it is, on the monotonic clock."""

    known: dict[str, tuple[str | None, float]] = field(default_factory=dict)

    def seconds(self, place: str, state: str | None, now: float) -> float:
        """How long a place has been in this state."""
        before = self.known.get(place)
        if before is None or before[0] != state:
            self.known[place] = (state, now)
            return 0.0
        return now - before[1]


@dataclass(slots=True, kw_only=True)
class Watch:
    """One `look()` every few seconds.

    Args:
        incidents, processes, outbox: what is open, who is alive, which channels take nothing.
        config: as it is now.
    """

    incidents: Incidents
    processes: Processes
    outbox: Outbox
    config: Callable[[], Config]
    clock: Clock
    new_id: Callable[[], str]
    base_url: str
    _since: _Since = field(default_factory=_Since)

    async def look(self) -> None:
        """Look after every open incident, and at every location."""
        standing = await self.incidents.open()
        for incident, verdict in standing:
            if self._tender().tend(incident, verdict) is not None:
                await self._tend(incident, verdict)
        in_trouble = {incident.location for incident, _ in standing if incident.rule == "monitor"}
        beats = await self.processes.alive(now=self.clock.now())
        places = {place: trouble_of(beats, place) for place in self._watched()}
        channels = await self.outbox.channel_troubles(now=self.clock.now())
        places |= {f"channel:{name}": trouble for name, trouble in channels.items() if name in self.config().channels}
        for location in sorted({*in_trouble, *places}):
            trouble = places.get(location)
            if self._lasts(location, trouble) and (trouble is None) == (location in in_trouble):
                await self._turn(location, trouble)

    async def _tend(self, incident: Incident, verdict: Verdict | None) -> None:
        def decide(again: Incident | None) -> Told | None:
            return None if again is None else self._tender().tend(again, verdict)

        told = await self.incidents.decide(
            target=incident.target, location=incident.location, rule=incident.rule, decide=decide
        )
        if told is not None:
            for change in told.changes:
                log.info("incident_tended", incident=change.incident.id, kind=change.kind, summary=change.summary)

    async def _turn(self, location: str, trouble: str | None) -> None:
        """The monitor's own incident at a location begins or ends."""
        told = await self.incidents.decide(
            target=MONITOR,
            location=location,
            rule="monitor",
            decide=lambda opened: self._tender().monitor(location=location, trouble=trouble, opened=opened),
        )
        if told is not None:
            log.warning("monitor_in_trouble" if trouble else "monitor_well", location=location, trouble=trouble)

    def _lasts(self, location: str, trouble: str | None) -> bool:
        lasted = self._since.seconds(location, trouble, self.clock.monotonic_ns() / 1e9)
        return lasted >= {"no_worker": ABSENT_S, None: WELL_S}.get(trouble, 0.0)

    def _watched(self) -> set[str]:
        """Locations that should have a worker."""
        return {place for target in self.config().targets if not target.paused for place in target.locations}

    def _tender(self) -> Tender:
        return Tender(config=self.config(), now=self.clock.now(), new_id=self.new_id, base_url=self.base_url)
