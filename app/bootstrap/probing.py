"""How this process probes: one wire for targets of the config file, a guarded one for those made by the API."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from app.alerts.guard import Guard
from app.bootstrap.core import Core
from app.measurement.model import Reading
from app.measurement.recording import Recording
from app.probe.canary import Canary, is_far, reachable
from app.probe.client import Clients
from app.probe.lag import LagMeter
from app.probe.prober import Prober
from app.targets.model import Target

LATE_S = 0.25
"""A run during which the event loop was later than this was not measured well."""
RECENT = 10
FEWEST = 5
FORGOTTEN_S = 900.0
"""Runs longer ago tell nothing of the loop as it is now."""


@dataclass(slots=True, kw_only=True)
class Probing:
    """Sends each target over the wire that it may use. Both wires share the lag meter and what providers have refused."""

    trusted: Prober
    guarded: Prober

    async def probe(self, target: Target, *, scheduled_at: datetime | None = None) -> tuple[Recording, Reading]:
        """Targets of the config file go anywhere; those made by the API, to public addresses and `allow_networks`."""
        prober = self.trusted if target.origin == "file" else self.guarded
        return await prober.probe(target, scheduled_at=scheduled_at)


@dataclass(slots=True, kw_only=True)
class Watchful:
    """The canary, and how late the loop was during the last runs: what this process says of its own health."""

    canary: Canary
    lag: LagMeter
    _lags: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=RECENT))

    async def probe(self, target: Target, *, scheduled_at: datetime | None = None) -> tuple[Recording, Reading]:
        """As the canary probes."""
        recording, reading = await self.canary.probe(target, scheduled_at=scheduled_at)
        self._lags.append((self.canary.clock.monotonic_ns(), recording.host.loop_lag_max_s or 0.0))
        return recording, reading

    def trouble(self) -> str | None:
        """`no_network`, `loop_late`, or None: this process can measure."""
        if self.canary.down:
            return "no_network"
        since = self.canary.clock.monotonic_ns() - FORGOTTEN_S * 1e9
        lags = [lag for at, lag in self._lags if at >= since]
        return "loop_late" if len(lags) >= FEWEST and 2 * sum(lag > LATE_S for lag in lags) > len(lags) else None


def build_prober(core: Core, stack: AsyncExitStack) -> Watchful:
    """The prober of a worker; the stack closes its connections."""
    guard = Guard(lambda: core.holder.current.allow_networks)
    lag, lessons = LagMeter(), dict[str, frozenset[str]]()

    def wire(clients: Clients) -> Prober:
        stack.push_async_callback(clients.aclose)
        return Prober(
            clients=clients,
            resolve=core.secrets.resolve,
            clock=core.clock,
            rng=random.SystemRandom(),
            lag=lag,
            lessons=lessons,
        )

    addresses = core.settings.neutral
    canary = Canary(
        inner=Probing(trusted=wire(Clients()), guarded=wire(Clients(guard=guard))),
        look=partial(reachable, addresses) if addresses else None,
        clock=core.clock,
        providers=_far_providers(core),
    )
    return Watchful(canary=canary, lag=lag)


def _far_providers(core: Core) -> Callable[[], int]:
    return lambda: sum(is_far(provider.base_url) for provider in core.holder.current.providers.values())
