"""One look at the database a second, however many listen: a short memory of what happened, numbered."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from app.clock import Clock
from app.errors import BandwatchError
from app.storage.database import Database
from app.storage.queries.events import Event, Seen, events_since, from_now_on
from app.storage.queries.session import reading

REMEMBERED = 1000
PERIOD_NS = 1_000_000_000


@dataclass(slots=True)
class Feed:
    """What happened lately. Whoever asks first in a second looks for all."""

    database: Database
    clock: Clock
    listeners: int = 0
    _memory: deque[tuple[int, Event]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _seen: Seen | None = None
    _number: int = 0
    _looked_ns: int | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def join(self) -> int:
        """One more listens; returns the number after which its events begin."""
        if self.listeners == 0:
            self._seen = None  # what happened while nobody listened is nobody's news
        self.listeners += 1
        return self._number

    def leave(self) -> None:
        """One less listens."""
        self.listeners -= 1

    async def after(self, number: int) -> list[tuple[int, Event]]:
        """What came after that number, as far as it is remembered; the database being away is nothing new."""
        async with self._lock:
            now_ns = self.clock.monotonic_ns()
            if self._looked_ns is None or now_ns - self._looked_ns >= PERIOD_NS:
                self._looked_ns = now_ns
                await self._look()
        return [(at, event) for at, event in self._memory if at > number]

    async def _look(self) -> None:
        try:
            async with reading(self.database) as session:
                now = self.clock.now()
                if self._seen is None:
                    self._seen = await from_now_on(session, now=now)
                    return
                fresh, self._seen = await events_since(session, self._seen, now=now)
        except BandwatchError:
            return
        for event in fresh:
            self._number += 1
            self._memory.append((self._number, event))
