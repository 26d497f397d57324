"""Whose network is down? Ours, when several providers cannot be reached at once and neutral addresses cannot either.

The rule needs both halves. Providers share clouds and fail together, so their failures alone prove nothing; and a canary
that has never answered (a host without a way to the internet, which watches its own vLLM) proves nothing either.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol
from urllib.parse import urlsplit

import structlog

from app.clock import Clock
from app.measurement.model import ErrorClass, Measurement, Outcome, Reading
from app.measurement.recording import FailureKind, Recording
from app.targets.model import Target

log = structlog.get_logger()

Address = tuple[str, int]
CONNECT_S = 3.0
WINDOW_S = 180.0
"""Failures further apart than this are not at once."""
SEVERAL = 2
LOOK_UP_S = 5.0
"""One look serves all probes that fail within this long."""
LOOK_IDLE_S = 300.0
"""How often a canary is looked at that has never answered."""
_UNREACHED = frozenset({FailureKind.DNS, FailureKind.CONNECT, FailureKind.DEADLINE_CONNECT, FailureKind.LOCAL})
_NOTE = "own_network_down"


class Inner(Protocol):
    """What is sheltered: a prober."""

    async def probe(self, target: Target, *, scheduled_at: datetime | None = None) -> tuple[Recording, Reading]:
        """Never raises for what the provider does."""
        ...


async def reachable(addresses: Sequence[Address], *, seconds: float = CONNECT_S) -> bool:
    """Does one of these addresses take a TCP connection? All are asked at once, nothing is sent."""
    found = asyncio.Event()

    async def ask(host: str, port: int) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(seconds):
                _, writer = await asyncio.open_connection(host, port)
            found.set()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async with asyncio.TaskGroup() as group:
        for host, port in addresses:
            group.create_task(ask(host, port))
    return found.is_set()


@dataclass(slots=True, kw_only=True)
class Reach:
    """The last attempt to connect to each provider: when, and whether it came to a connection. Seconds of any clock."""

    _last: dict[str, tuple[float, bool]] = field(default_factory=dict)

    def note(self, provider: str, *, at: float, reached: bool) -> None:
        """Remember an attempt."""
        self._last[provider] = (at, reached)

    def fail_together(self, *, at: float, providers: int) -> bool:
        """Have several providers (all, where only one is configured) failed lately, and none been reached since?"""
        failed = [when for when, reached in self._last.values() if not reached and at - when <= WINDOW_S]
        if len(failed) < min(SEVERAL, max(1, providers)):
            return False
        return not any(reached and when >= min(failed) for when, reached in self._last.values())


@dataclass(slots=True, kw_only=True)
class Canary:
    """A prober around a prober: what failed because this host has no network becomes a local error.

    Args:
        inner: makes the calls.
        look: does a neutral address answer? None: the canary is off, and every failure is the provider's.
        providers: how many providers of the configuration lie beyond this host.
    """

    inner: Inner
    look: Callable[[], Awaitable[bool]] | None
    clock: Clock
    providers: Callable[[], int]
    down: bool = False
    """Is this host's own network known to be down?"""
    _reach: Reach = field(default_factory=Reach)
    _answered: bool = False
    _seen: tuple[float, bool] | None = None
    _gate: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def probe(self, target: Target, *, scheduled_at: datetime | None = None) -> tuple[Recording, Reading]:
        """As the inner prober, but for whose fault it was."""
        recording, reading = await self.inner.probe(target, scheduled_at=scheduled_at)
        if self.look is None or not is_far(target.provider.base_url):
            return recording, reading
        reached = recording.marks.connected is not None
        failed = recording.failure is not None and recording.failure.kind in _UNREACHED and not reached
        if reached or failed:
            self._reach.note(target.provider.name, at=self._now(), reached=reached)
        if reached and self.down:
            self._turn(down=False)
        if failed and await self._is_ours():
            return recording, replace(reading, measurement=ours(reading.measurement))
        return recording, reading

    async def keep(self) -> None:
        """One look now and then: at a canary that has never answered, and at a network that is down."""
        if self.look is None:
            return
        idle = LOOK_UP_S if self.down else LOOK_IDLE_S
        if (self.down or not self._answered) and await self._looks_up(fresh_s=idle) and self.down:
            self._turn(down=False)

    async def _is_ours(self) -> bool:
        if not self._reach.fail_together(at=self._now(), providers=self.providers()):
            return False
        down = not await self._looks_up(fresh_s=LOOK_UP_S) and self._answered
        self._turn(down=down)
        return down

    async def _looks_up(self, *, fresh_s: float) -> bool:
        """One look for everybody who asks within `fresh_s`."""
        async with self._gate:
            if self.look is not None and (self._seen is None or self._now() - self._seen[0] > fresh_s):
                up = await self.look()
                self._answered = self._answered or up
                self._seen = (self._now(), up)
            return self._seen is not None and self._seen[1]

    def _turn(self, *, down: bool) -> None:
        if down != self.down:
            log.warning("own_network", down=down)
        self.down = down

    def _now(self) -> float:
        return self.clock.monotonic_ns() / 1e9


def is_far(base_url: str) -> bool:
    """Does the way to this provider lead over a network? A server on this host fails on its own account."""
    host = urlsplit(base_url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")


def ours(m: Measurement) -> Measurement:
    """The same failure as a fault of this host."""
    return replace(
        m,
        outcome=Outcome.LOCAL_ERROR,
        error_class=ErrorClass.LOCAL,
        error_text=f"this host's own network is down: {m.error_text or 'nothing can be reached'}"[:300],
        notes=tuple(sorted({*m.notes, _NOTE})),
    )
