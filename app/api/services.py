"""What the API is made of; bootstrap passes it in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from app.catalog.load import Catalog
from app.clock import Clock
from app.metrics.snapshot import Build
from app.storage.database import Database
from app.targets.model import Config, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one caller may take. Buckets are per address and per key."""

    requests_per_s: float = 20.0
    burst: int = 200
    body_bytes: int = 1 << 20
    ready_s: float = 0.8
    """How long `/readyz` waits for the database; with all around it under a second."""
    scrape_s: float = 5.0
    streams: int = 50
    """Open event streams at once."""
    exported_runs: int = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The rest of the program as the API sees it.

    `config` gives the current configuration with what the API made merged in and pauses applied; `reload` makes this
    process (and, in time, the others) see a change of those. `trigger_probe` queues a probe of a target at a location for
    that instant, ahead of the grid.
    """

    database: Database
    clock: Clock
    config: Callable[[], Config]
    reload: Callable[[], Awaitable[None]]
    trigger_probe: Callable[[Target, str, datetime], Awaitable[None]]
    build: Build
    catalog: Catalog | None = None
    """The catalogue; the shipped one unless given."""
    exposed: bool = False
    """Does it listen on more than loopback? Then nothing but health and metrics answers until a key exists."""
    public_url: str | None = None
    config_loaded: Callable[[], bool] = field(default=lambda: True)
    loop_lag_s: Callable[[], float | None] = field(default=lambda: None)
    schedules: bool = False
    """Does this service schedule? Then it is ready only while ticks are finishing."""
    stopping: Callable[[], bool] = field(default=lambda: False)
    """Is the process about to end? Event streams end then."""
    limits: Limits = Limits()
