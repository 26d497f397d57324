"""The rows of one result: its run, what it adds to the totals, its evidence, and the verdict that follows."""

from __future__ import annotations

import msgspec
from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.measurement.model import Run
from app.measurement.totals import Totals
from app.storage import tables
from app.verdict.outbox import Decision, Past

KEPT_RECORDINGS = 50
"""The most recordings that one target keeps; the oldest goes first."""

_INSERT = (
    insert(tables.runs).on_conflict_do_nothing(index_elements=["due_at", "target", "location"]).returning(tables.runs.c.due_at)
)
_LOCK = text("SELECT totals::text FROM totals WHERE target = :target AND location = :location FOR UPDATE")
_FIRST = text("INSERT INTO totals VALUES (:target, :location, '{}') ON CONFLICT DO NOTHING")
_TOTALS = text("UPDATE totals SET totals = CAST(:totals AS jsonb) WHERE target = :target AND location = :location")
_VERDICT = text("""
WITH counted AS (UPDATE totals SET totals = CAST(:totals AS jsonb) WHERE target = :target AND location = :location)
INSERT INTO verdicts (target, location, due_at, state, severity, checked_at, verdict, trail)
VALUES (:target, :location, :due_at, :state, :severity, :checked_at, CAST(:verdict AS jsonb), CAST(:trail AS jsonb))
ON CONFLICT (target, location) DO UPDATE SET due_at = excluded.due_at, state = excluded.state,
  severity = excluded.severity, checked_at = excluded.checked_at, verdict = excluded.verdict, trail = excluded.trail
""")
_CHANGE = text("""
INSERT INTO verdict_changes (target, location, at, state, severity, verdict)
VALUES (:target, :location, :checked_at, :state, :severity, CAST(:verdict AS jsonb))
""")


async def hold(connection: AsyncConnection, run: Run) -> Totals:
    """Take the lock of the run's (target, location), which is its row of totals: until the transaction ends, nobody else
    stores a result of it. Returns the totals.
    """
    key = {"target": run.target, "location": run.location}
    row = (await connection.execute(_LOCK, key)).first()
    if row is None:
        await connection.execute(_FIRST, key)
        row = (await connection.execute(_LOCK, key)).one()
    return msgspec.json.decode(row[0], type=Totals)


async def insert_run(connection: AsyncConnection, run: Run) -> bool:
    """Store a run; False when its tick has a result already."""
    m = run.measurement
    row = {
        "id": run.id,
        "due_at": run.due_at,
        "target": run.target,
        "location": run.location,
        "provider": run.provider,
        "model": run.model,
        "recipe": run.recipe,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "outcome": m.outcome,
        "error_class": m.error_class,
        "connection": m.connection,
        "ttft_s": m.ttft_s,
        "ttft_reliable": m.reliable.ttft,
        "decode_tps": m.decode_tps,
        "tpot_s": m.tpot_s,
        "tps_reliable": m.reliable.tps,
        "e2e_s": m.e2e_s,
        "gap_max_s": m.gaps.max_s,
        "connect_s": m.phases.connect_s,
        "tls_s": m.phases.tls_s,
        "output_tokens": m.output_tokens,
        "contaminated": "contaminated" in m.notes,
        "cost_usd": run.cost_usd,
        "has_recording": run.recording is not None,
        "measurement": m,
        "read_stamps_s": run.read_stamps_s,
        "read_tokens": run.read_tokens,
    }
    return (await connection.execute(_INSERT, row)).first() is not None


async def count(connection: AsyncConnection, run: Run, totals: Totals) -> None:
    """Store the totals of the run's (target, location)."""
    values = {"target": run.target, "location": run.location, "totals": msgspec.json.encode(totals).decode()}
    await connection.execute(_TOTALS, values)


async def keep_recording(connection: AsyncConnection, run: Run) -> None:
    """Keep a run's recording as evidence; the oldest beyond `KEPT_RECORDINGS` go."""
    k = tables.recordings
    await connection.execute(insert(k).values(run_id=run.id, target=run.target, kept_at=run.finished_at, content=run.recording))
    stale = select(k.c.run_id).where(k.c.target == run.target).order_by(k.c.kept_at.desc()).offset(KEPT_RECORDINGS)
    await connection.execute(k.delete().where(k.c.run_id.in_(stale)))


async def conclude(connection: AsyncConnection, run: Run, totals: Totals, *, past: Past, decision: Decision) -> None:
    """Store the totals, and make a verdict the present one; its state or severity being new is a change that is kept."""
    verdict = decision.verdict
    change = {
        "target": run.target,
        "location": run.location,
        "state": verdict.state,
        "severity": verdict.severity,
        "checked_at": verdict.checked_at,
        "verdict": msgspec.json.encode(verdict).decode(),
    }
    documents = {"trail": decision.advance.trail, "totals": totals}
    encoded = {name: msgspec.json.encode(document).decode() for name, document in documents.items()}
    await connection.execute(_VERDICT, {**change, **encoded, "due_at": run.due_at})
    if past.previous is None or (past.previous.state, past.previous.severity) != (verdict.state, verdict.severity):
        await connection.execute(_CHANGE, change)
