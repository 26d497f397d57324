"""Time as an argument: a clock that is real, and one that a test winds by hand."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """The three things that code asks of time."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds that never go back; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let `seconds` pass."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic_ns(self) -> int:
        """Nanoseconds of `CLOCK_MONOTONIC`."""
        return time.monotonic_ns()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(seconds)


@dataclass(slots=True)
class FakeClock:
    """A clock wound by hand: `sleep` returns at once and moves both clocks; `step` moves the wall clock alone."""

    wall: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    mono_ns: int = 0

    def now(self) -> datetime:
        """The wound wall clock."""
        return self.wall

    def monotonic_ns(self) -> int:
        """The wound monotonic clock."""
        return self.mono_ns

    async def sleep(self, seconds: float) -> None:
        """Advance by `seconds` and let other tasks run once."""
        self.advance(seconds)
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        """Move both clocks forward."""
        self.wall += timedelta(seconds=seconds)
        self.mono_ns += round(seconds * 1e9)

    def step(self, seconds: float) -> None:
        """Step the wall clock (NTP, an operator) without time passing."""
        self.wall += timedelta(seconds=seconds)
