"""What a scrape shows: the state of everything at one instant, as plain values. Whoever scrapes fills it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.measurement.totals import Totals
from app.targets.model import Target
from app.verdict.model import Severity, Verdict

TICK_RESULTS = ("run", "late", "missed", "skipped_budget", "skipped_paused", "skipped_overlap")
NOTIFICATION_RESULTS = ("delivered", "retried", "dead")


class Direction(StrEnum):
    """Which way tokens went: into the model, or out of it."""

    IN = "in"
    OUT = "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Which program this is."""

    version: str
    revision: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One target at one location: what was counted, and what is said of it. None: nothing was said yet."""

    totals: Totals = field(default_factory=Totals)
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A target and its locations. A location without a cell has not run yet."""

    target: Target
    cells: Mapping[str, Cell] = field(default_factory=dict)
    expected_tps: float | None = None
    ceiling_tps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How the service itself is. None, or an absent key: not known, and then not shown."""

    incidents_open: Mapping[Severity, int] = field(default_factory=dict)
    ticks: Mapping[str, int] = field(default_factory=dict)
    notifications: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(channel, result) -> attempts."""
    last_tick_at: datetime | None = None
    lateness_s: float | None = None
    """The worst lateness of the last starts, over all workers."""
    in_flight: int | None = None
    queue_oldest_s: float | None = None
    outbox_oldest_s: float | None = None
    dead_letters: int | None = None
    partitions_ahead: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What the scraped process knows without asking anybody."""

    build: Build
    loop_lag_s: float | None = None
    """The worst event-loop lag of this process and of those that reported lately, in seconds."""
    pool: Mapping[str, int] = field(default_factory=dict)
    config_loaded: bool = True
    """Did the last attempt to load the config file succeed?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All of a scrape. `service` None: the database did not answer, so nothing that it keeps is shown."""

    process: Process
    service: Service | None = None
    watched: tuple[Watched, ...] = ()
    channels: tuple[str, ...] = ()
    """The channels of the configuration."""
