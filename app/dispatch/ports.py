"""What dispatch asks of its strangers: the ledger (storage) and the prober (probe). `bootstrap` passes them in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date, datetime
from typing import Any, Protocol

from app.measurement.model import Reading, Run
from app.measurement.recording import Recording
from app.targets.grid import Walk
from app.targets.model import Target
from app.verdict.outbox import Claim, Decision, Past, Recorded

Decide = Callable[[Past], Decision]
"""The pure judgement of a run, called inside the transaction that stores it."""

Within = Callable[[Any], Awaitable[object]]
"""Work on a transaction's connection, asyncpg's own."""


class Ledger(Protocol):
    """What is known of ticks, and what may be spent."""

    async def claim(self, *, target: str, location: str, due_at: datetime, owner: str) -> Claim:
        """Take a tick; tells whether it is new, was tried before without a result, or is done."""
        ...

    async def reserve(self, *, target: Target, tokens: int, usd: float | None, day: date) -> bool:
        """Reserve against the provider's and the target's budget of that UTC day; False when one of them refuses."""
        ...

    async def settle(
        self,
        *,
        target: Target,
        day: date,
        reserved_tokens: int,
        used_tokens: int,
        reserved_usd: float | None = None,
        used_usd: float | None = None,
    ) -> None:
        """Correct a reservation to what was used."""
        ...

    async def record(self, run: Run, *, target: Target, decide: Decide, result: str = "run") -> Recorded:
        """Store a run, with what became of its tick and everything that follows, in one transaction fenced by the tick."""
        ...

    async def finish(self, *, target: str, location: str, due_at: datetime, result: str) -> str:
        """Say what became of a tick; the first word stands, is counted once, and returned."""
        ...


class Prober(Protocol):
    """Makes one call and reads it."""

    async def probe(self, target: Target, *, scheduled_at: datetime | None = None) -> tuple[Recording, Reading]:
        """Never raises for what the provider does: a failure is an outcome."""
        ...


class Mark(Protocol):
    """How far the grid has been walked, kept over restarts and shared by all schedulers."""

    async def load(self) -> Walk | None:
        """The last one saved; None before the first."""
        ...

    async def save(self, walk: Walk, *, over: Walk | None, missed: int = 0, within: Within | None = None) -> bool:
        """Remember it, count the ticks that it passed and that will never run, and do what is to be done `within` the same
        transaction. False: what is remembered is not `over`, for somebody else walks; then nothing is done.
        """
        ...

    async def set_back(self, now: datetime) -> None:
        """The clock was set back to `now`: whatever waits for an instant that was near is not to wait until it comes again."""
        ...
