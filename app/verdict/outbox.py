"""What is announced: an incident's change for one channel, and how its delivery stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.measurement.window import Sample
from app.verdict.model import Advance, Change, Incident, Trail, Verdict


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """One message to one channel. `id` is the `webhook-id`, the same over all retries; `body` is the webhook's JSON."""

    id: str
    channel: str
    type: str
    """`incident.opened`, `incident.updated`, `incident.reminder`, `incident.resolved` or `channel.test`."""
    body: Mapping[str, Any]
    incident_id: str | None = None
    created_at: datetime
    not_before: datetime | None = None
    """It waits until then for others of its group."""
    group: str | None = None
    """Announcements of one type to one channel with the same group may be merged into one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is stored of changes, and who is told. `on_record` False: the timeline has them already."""

    changes: tuple[Change, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    on_record: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """A pending announcement that one courier holds until `leased_until`."""

    announcement: Announcement
    attempts: int
    leased_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of one attempt: HTTP status or None, seconds, the redacted start of the answer or error."""

    at: datetime
    status: int | None
    latency_s: float
    response: str


class Claim(StrEnum):
    """What a worker is told when it asks for a tick."""

    NEW = "new"
    AGAIN = "again"
    """An earlier attempt left no result (its worker died): probe once more, counted as a repeated call."""
    DONE = "done"
    """The tick has its terminal result: do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a decision about one (target, location) may look at, read in the transaction that stores the new run.

    `samples` are newest last, include the new run, and reach back `thresholds.windows` windows.
    """

    samples: tuple[Sample, ...]
    baseline: tuple[Sample, ...]
    """Older samples (up to 7 days, thinned), newest last, for the target's own history."""
    previous: Verdict | None
    trail: Trail
    open_incidents: tuple[Incident, ...]
    locations: Mapping[str, tuple[Sample, ...]]
    """The last window of every other location of the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What follows from a run: stored and announced in that same transaction."""

    verdict: Verdict
    advance: Advance
    announcements: tuple[Announcement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What came of storing a run. `stored` False: the tick already had its result, and nothing changed."""

    stored: bool
    decision: Decision | None = None
