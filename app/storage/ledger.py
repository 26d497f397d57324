"""The ledger of ticks: what was claimed, what may be spent, and what came of it, each in one short transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from app.clock import Clock
from app.measurement.model import Run
from app.measurement.totals import advance_totals
from app.storage import budgets, results
from app.storage.database import Database
from app.storage.incidents import write_advance
from app.storage.outbox import add
from app.storage.partitions import create
from app.storage.past import AHEAD, PastReader
from app.storage.rollups import is_late, list_late
from app.storage.ticks import tell, tell_stored
from app.targets.model import Target, Thresholds
from app.verdict.outbox import Claim, Decision, Past, Recorded

NO_PARTITION = "23514"
"""SQLSTATE of a row for which there is no partition: the clock jumped further than partitions are made ahead."""

_OF_TICK = "due_at = :due_at AND target = :target AND location = :location"
_DONE = text(f"""
SELECT 1 FROM runs WHERE {_OF_TICK} UNION ALL SELECT 1 FROM claims WHERE {_OF_TICK} AND result IS NOT NULL LIMIT 1
""")  # noqa: S608 - constants
_CLAIM = text("""
INSERT INTO claims (due_at, target, location, owner, claimed_at, attempts)
VALUES (:due_at, :target, :location, :owner, :now, 1)
ON CONFLICT (due_at, target, location) DO UPDATE
  SET owner = excluded.owner, claimed_at = excluded.claimed_at, attempts = claims.attempts + 1
RETURNING attempts
""")


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Ticks, budgets and results."""

    database: Database
    clock: Clock
    thresholds: Callable[[], Thresholds]
    _pasts: PastReader = field(default_factory=PastReader)

    async def claim(self, *, target: str, location: str, due_at: datetime, owner: str) -> Claim:
        """Take a tick. One with a stored run or a known result is done, whoever asks; one claimed before is tried again."""
        tick = {"due_at": due_at, "target": target, "location": location}
        async with self.database.write() as connection:
            if (await connection.execute(_DONE, tick)).first() is not None:
                return Claim.DONE
            claimed = await connection.execute(_CLAIM, {**tick, "owner": owner, "now": self.clock.now()})
            return Claim.NEW if claimed.scalar_one() == 1 else Claim.AGAIN

    async def reserve(self, *, target: Target, tokens: int, usd: float | None, day: date) -> bool:
        """Reserve against the provider's and the target's budget of that UTC day, both or none, over all workers."""
        scopes = budgets.scopes_of(target)
        if not scopes:
            return True
        async with self.database.write() as connection:
            for scope, budget in scopes.items():
                if not await budgets.reserve(connection, scope, budget, tokens=tokens, usd=usd or 0.0, day=day):
                    await connection.rollback()
                    return False
        return True

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
        scopes = budgets.scopes_of(target)
        tokens, usd = used_tokens - reserved_tokens, (used_usd or 0.0) - (reserved_usd or 0.0)
        if scopes and (tokens or usd):
            async with self.database.write() as connection:
                await budgets.correct(connection, scopes, tokens=tokens, usd=usd, day=day)

    async def record(self, run: Run, *, target: Target, decide: Callable[[Past], Decision], result: str = "run") -> Recorded:
        """Store a run and what became of its tick, totals, verdict, incidents and their announcements: all of it, or nothing.

        One (target, location) at a time. A tick that has its result (a run, or missed) stays as it is; a run older than the one
        that the verdict rests on is stored, and decides nothing. One that rests on the future is of a clock that was set back.
        """
        try:
            return await self._record(run, target, decide, result)
        except IntegrityError as error:
            if getattr(error.orig, "sqlstate", "") != NO_PARTITION:
                raise
        await create(self.database, run.due_at.astimezone(UTC).date())
        return await self._record(run, target, decide, result)

    async def _record(self, run: Run, target: Target, decide: Callable[[Past], Decision], result: str) -> Recorded:
        async with self.database.write() as connection:
            totals = await results.hold(connection, run)
            if not await tell_stored(connection, run, result) or not await results.insert_run(connection, run):
                return Recorded(stored=False)
            totals = advance_totals(totals, run)
            if run.recording is not None:
                await results.keep_recording(connection, run)
            if is_late(run.due_at, now=self.clock.now()):
                await list_late(connection, run.due_at)
            past, newest = await self._pasts.read(connection, run, target=target, thresholds=self.thresholds())
            if newest is not None and run.due_at < newest <= max(self.clock.now(), run.finished_at) + AHEAD:
                await results.count(connection, run, totals)
                return Recorded(stored=True)
            decision = decide(past)
            await results.conclude(connection, run, totals, past=past, decision=decision)
            await write_advance(connection, decision.advance)
            await add(connection, decision.announcements)
        return Recorded(stored=True, decision=decision)

    async def finish(self, *, target: str, location: str, due_at: datetime, result: str) -> str:
        """Say what became of a tick; the first word stands, is counted once, and returned."""
        async with self.database.write() as connection:
            return await tell(connection, target=target, location=location, due_at=due_at, result=result, now=self.clock.now())
