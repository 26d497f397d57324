"""The ledger of ticks: what was claimed, what may be spent, and what came of it, each in one short transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import and_, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.clock import Clock
from app.measurement.model import Run
from app.measurement.totals import Totals, advance_totals
from app.measurement.window import Sample
from app.storage import tables
from app.storage.database import Database
from app.storage.documents import from_document, to_document
from app.storage.incidents import open_incidents, write_advance
from app.storage.outbox import add
from app.storage.samples import SAMPLE_COLUMNS, sample_of
from app.targets.model import Budget, Target, Thresholds
from app.verdict.model import Trail, Verdict
from app.verdict.outbox import Claim, Decision, Past, Recorded

BASELINE = timedelta(days=7)
BASELINE_SAMPLES = 400
WINDOW_SAMPLES = 600
KEPT_RECORDINGS = 50
"""The most recordings that one target keeps; the oldest goes first."""


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Ticks, budgets and results."""

    database: Database
    clock: Clock
    thresholds: Callable[[], Thresholds]

    async def claim(self, *, target: str, location: str, due_at: datetime, owner: str) -> Claim:
        """Take a tick. A tick with a stored run is done, whoever asks; one that was claimed before is tried again."""
        now = self.clock.now()
        async with self.database.write() as connection:
            r = tables.runs
            done = await connection.execute(
                select(r.c.id).where(r.c.due_at == due_at, r.c.target == target, r.c.location == location)
            )
            if done.first() is not None:
                return Claim.DONE
            claim = insert(tables.claims).values(
                due_at=due_at, target=target, location=location, owner=owner, claimed_at=now, attempts=1
            )
            again = claim.on_conflict_do_update(
                index_elements=["due_at", "target", "location"],
                set_={"owner": owner, "claimed_at": now, "attempts": tables.claims.c.attempts + 1},
            ).returning(tables.claims.c.attempts)
            attempts = (await connection.execute(again)).scalar_one()
        return Claim.NEW if attempts == 1 else Claim.AGAIN

    async def reserve(self, *, target: Target, tokens: int, usd: float | None, day: date) -> bool:
        """Reserve against the provider's and the target's budget of that UTC day, both or none, over all workers."""
        scopes = _scopes(target)
        if not scopes:
            return True
        async with self.database.write() as connection:
            for scope, budget in scopes.items():
                if not await _reserve(connection, scope, budget, tokens=tokens, usd=usd or 0.0, day=day):
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
        scopes = _scopes(target)
        tokens, usd = used_tokens - reserved_tokens, (used_usd or 0.0) - (reserved_usd or 0.0)
        if not scopes or (not tokens and not usd):
            return
        b = tables.budgets
        async with self.database.write() as connection:
            await connection.execute(
                update(b)
                .where(b.c.scope.in_(sorted(scopes)), b.c.day == day)
                .values(tokens=func.greatest(b.c.tokens + tokens, 0), usd=func.greatest(b.c.usd + usd, 0.0))
            )

    async def record(self, run: Run, *, target: Target, decide: Callable[[Past], Decision]) -> Recorded:
        """Store a run, its totals, its verdict, its incidents and their announcements: all of it, or nothing.

        One (target, location) at a time, by an advisory lock of the transaction. A tick that has its result stays as it is;
        a run older than the one that the verdict rests on is stored, and decides nothing.
        """
        async with self.database.write() as connection:
            await connection.execute(
                text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))"), {"key": f"{run.target}|{run.location}"}
            )
            if not await _insert_run(connection, run):
                return Recorded(stored=False)
            await _advance_totals(connection, run)
            if run.recording is not None:
                await _keep(connection, run)
            past, newest = await self._past(connection, run, target)
            if newest is not None and newest > run.due_at:
                return Recorded(stored=True)
            decision = decide(past)
            await _write_verdict(connection, run, past, decision)
            await write_advance(connection, decision.advance)
            await add(connection, decision.announcements)
        return Recorded(stored=True, decision=decision)

    async def count_tick(self, result: str, n: int = 1) -> None:
        """Add to the count of ticks with that result."""
        async with self.database.write() as connection:
            statement = insert(tables.tick_counts).values(result=result, n=n)
            await connection.execute(
                statement.on_conflict_do_update(index_elements=["result"], set_={"n": tables.tick_counts.c.n + n})
            )

    async def _past(self, connection: AsyncConnection, run: Run, target: Target) -> tuple[Past, datetime | None]:
        """What a decision may look at, and the due time that the present verdict rests on."""
        thresholds = self.thresholds()
        reach = thresholds.past_for(target.every_s)
        since = run.started_at - timedelta(seconds=reach)
        r, v = tables.runs, tables.verdicts
        recent = (
            select(r.c.location, *SAMPLE_COLUMNS)
            .where(r.c.target == run.target, r.c.started_at > since, r.c.due_at > since - timedelta(hours=1))
            .order_by(r.c.started_at.desc())
            .limit(WINDOW_SAMPLES * len(target.locations))
        )
        by_location: dict[str, list[Any]] = {}
        for row in (await connection.execute(recent)).all():
            by_location.setdefault(row.location, []).append(row)
        samples = {place: tuple(sample_of(row) for row in reversed(rows)) for place, rows in by_location.items()}
        before = (
            await connection.execute(
                select(v.c.verdict, v.c.trail, v.c.due_at).where(v.c.target == run.target, v.c.location == run.location)
            )
        ).first()
        past = Past(
            samples=samples.pop(run.location, ()),
            baseline=await _baseline(connection, run, until=since),
            previous=None if before is None else from_document(before.verdict, Verdict),
            trail=Trail() if before is None else from_document(before.trail, Trail),
            open_incidents=await open_incidents(connection, target=run.target, location=run.location),
            locations=samples,
        )
        return past, None if before is None else before.due_at


def _scopes(target: Target) -> Mapping[str, Budget]:
    """The budgets that bind a target, in one order for everybody (no deadlock)."""
    both = {f"provider:{target.provider.name}": target.provider.budget, f"target:{target.name}": target.budget}
    return {scope: budget for scope, budget in sorted(both.items()) if budget != Budget()}


async def _reserve(connection: AsyncConnection, scope: str, budget: Budget, *, tokens: int, usd: float, day: date) -> bool:
    b = tables.budgets
    statement = insert(b).values(scope=scope, day=day, tokens=tokens, usd=usd)
    room = []
    if budget.tokens_per_day is not None:
        if tokens > budget.tokens_per_day:
            return False
        room.append(b.c.tokens + tokens <= budget.tokens_per_day)
    if budget.usd_per_day is not None:
        if usd > budget.usd_per_day:
            return False
        room.append(b.c.usd + usd <= budget.usd_per_day)
    done = await connection.execute(
        statement.on_conflict_do_update(
            index_elements=["scope", "day"],
            set_={"tokens": b.c.tokens + tokens, "usd": b.c.usd + usd},
            where=and_(*room),
        ).returning(b.c.scope)
    )
    return done.first() is not None


async def _insert_run(connection: AsyncConnection, run: Run) -> bool:
    m = run.measurement
    statement = insert(tables.runs).values(
        id=run.id,
        due_at=run.due_at,
        target=run.target,
        location=run.location,
        provider=run.provider,
        model=run.model,
        recipe=run.recipe,
        started_at=run.started_at,
        finished_at=run.finished_at,
        outcome=m.outcome,
        error_class=m.error_class,
        connection=m.connection,
        ttft_s=m.ttft_s,
        ttft_reliable=m.reliable.ttft,
        decode_tps=m.decode_tps,
        tpot_s=m.tpot_s,
        tps_reliable=m.reliable.tps,
        e2e_s=m.e2e_s,
        gap_max_s=m.gaps.max_s,
        connect_s=m.phases.connect_s,
        tls_s=m.phases.tls_s,
        output_tokens=m.output_tokens,
        contaminated="contaminated" in m.notes,
        cost_usd=run.cost_usd,
        has_recording=run.recording is not None,
        measurement=to_document(m),
        read_stamps_s=list(run.read_stamps_s),
        read_tokens=list(run.read_tokens),
    )
    done = await connection.execute(
        statement.on_conflict_do_nothing(index_elements=["due_at", "target", "location"]).returning(tables.runs.c.id)
    )
    return done.first() is not None


async def _advance_totals(connection: AsyncConnection, run: Run) -> None:
    t = tables.totals
    row = (await connection.execute(select(t.c.totals).where(t.c.target == run.target, t.c.location == run.location))).first()
    totals = advance_totals(Totals() if row is None else from_document(row.totals, Totals), run)
    document = to_document(totals)
    statement = insert(t).values(target=run.target, location=run.location, totals=document)
    await connection.execute(statement.on_conflict_do_update(index_elements=["target", "location"], set_={"totals": document}))


async def _keep(connection: AsyncConnection, run: Run) -> None:
    k = tables.recordings
    await connection.execute(insert(k).values(run_id=run.id, target=run.target, kept_at=run.finished_at, content=run.recording))
    stale = select(k.c.run_id).where(k.c.target == run.target).order_by(k.c.kept_at.desc()).offset(KEPT_RECORDINGS)
    await connection.execute(k.delete().where(k.c.run_id.in_(stale)))


async def _baseline(connection: AsyncConnection, run: Run, *, until: datetime) -> tuple[Sample, ...]:
    """Up to `BASELINE_SAMPLES` successful samples of the last week before `until`, thinned evenly, oldest first."""
    r = tables.runs
    return tuple(
        sample_of(row)
        for row in (
            await connection.execute(
                select(*SAMPLE_COLUMNS)
                .where(
                    r.c.target == run.target,
                    r.c.location == run.location,
                    r.c.started_at > until - BASELINE,
                    r.c.started_at <= until,
                    r.c.outcome == "ok",
                )
                .order_by(r.c.started_at.desc())
                .limit(BASELINE_SAMPLES)
            )
        ).all()
    )[::-1]


async def _write_verdict(connection: AsyncConnection, run: Run, past: Past, decision: Decision) -> None:
    verdict = decision.verdict
    v = tables.verdicts
    values = {
        "due_at": run.due_at,
        "state": verdict.state,
        "severity": verdict.severity,
        "checked_at": verdict.checked_at,
        "verdict": to_document(verdict),
        "trail": to_document(decision.advance.trail),
    }
    statement = insert(v).values(target=run.target, location=run.location, **values)
    await connection.execute(statement.on_conflict_do_update(index_elements=["target", "location"], set_=values))
    if past.previous is None or (past.previous.state, past.previous.severity) != (verdict.state, verdict.severity):
        await connection.execute(
            insert(tables.verdict_changes).values(
                target=run.target,
                location=run.location,
                at=verdict.checked_at,
                state=verdict.state,
                severity=verdict.severity,
                verdict=values["verdict"],
            )
        )
