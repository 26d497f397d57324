"""What the courier asks of storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from app.verdict.outbox import Attempt, Leased

Join = Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]]


class Standing(Protocol):
    """What has been said and still stands."""

    async def standing(self, channel: str, *, ended_since: datetime) -> list[Mapping[str, Any]]:
        """The last body said to a channel of each incident that is open, or ended after `ended_since`."""
        ...


class Outbox(Standing, Protocol):
    """The alert outbox; of one (incident, channel) it gives out only the oldest that is pending."""

    async def merge(self, *, now: datetime, over: int, join: Join) -> int:
        """Unite or let go what waited for its group."""
        ...

    async def lease(self, *, owner: str, now: datetime, limit: int, lease_s: float, running: Mapping[str, int]) -> list[Leased]:
        """Take up to `limit` due announcements of each channel, less those that are running to it."""
        ...

    async def delivered(self, announcement_id: str, attempt: Attempt) -> None:
        """The receiver said yes."""
        ...

    async def retry(self, announcement_id: str, at: datetime, attempt: Attempt) -> None:
        """Try again at `at`."""
        ...

    async def dead(self, announcement_id: str, attempt: Attempt) -> None:
        """Give up."""
        ...

    async def release(self, *, owner: str) -> None:
        """Give back what this courier holds."""
        ...

    async def disable_channel(self, name: str, reason: str, *, now: datetime) -> None:
        """Use a channel no more."""
        ...

    async def disabled(self) -> frozenset[str]:
        """Channels that must not be used."""
        ...
