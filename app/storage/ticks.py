"""What became of ticks: told once each, and counted for good.

A tick's result is a field of its claim, and is set once. Counting it at once would make one row, the counter, the place
where all results queue up; so what is told is counted where it stands, and folded into the counters by upkeep.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.measurement.model import Run

STORED = frozenset({"run", "late", "skipped_budget"})
"""Results of ticks that have a run."""
LOST_AFTER = timedelta(minutes=10)
"""Longer than any probe, and than a worker waits for a database that is away."""
_COUNT = text("INSERT INTO tick_counts VALUES (:result, :n) ON CONFLICT (result) DO UPDATE SET n = tick_counts.n + excluded.n")
_OF_TICK = "due_at = :due_at AND target = :target AND location = :location"
_TELL = text("""
INSERT INTO claims (due_at, target, location, owner, claimed_at, attempts, result)
VALUES (:due_at, :target, :location, '', :now, 0, :result)
ON CONFLICT (due_at, target, location) DO UPDATE SET result = coalesce(claims.result, excluded.result)
RETURNING result
""")
_TELL_STORED = text(f"""
UPDATE claims c SET result = coalesce(c.result, :result) WHERE {_OF_TICK} RETURNING c.result
""")  # noqa: S608 - constants
_LOST = text("""
UPDATE claims SET result = 'missed' WHERE result IS NULL AND claimed_at < :before RETURNING 1
""")
_FOLD = text("""
WITH folded AS (UPDATE claims SET counted = true WHERE result IS NOT NULL AND NOT counted RETURNING result)
INSERT INTO tick_counts SELECT result, count(*) FROM folded GROUP BY result ORDER BY result
ON CONFLICT (result) DO UPDATE SET n = tick_counts.n + excluded.n
""")
_COUNTS = text("""
SELECT result, sum(n)::bigint AS n FROM (
  SELECT result, n FROM tick_counts
  UNION ALL SELECT result, count(*) FROM claims WHERE result IS NOT NULL AND NOT counted GROUP BY result
) c GROUP BY result
""")


async def count_missed(connection: AsyncConnection, n: int) -> None:
    """Count ticks that nobody ever took."""
    await connection.execute(_COUNT, {"result": "missed", "n": n})


async def tell(connection: AsyncConnection, *, target: str, location: str, due_at: datetime, result: str, now: datetime) -> str:
    """Say what became of a tick; the first word stands, and is returned."""
    tick = {"due_at": due_at, "target": target, "location": location, "now": now, "result": result}
    return str((await connection.execute(_TELL, tick)).scalar_one())


async def tell_stored(connection: AsyncConnection, run: Run, result: str) -> bool:
    """Say of a run's tick, in the transaction that stores the run, that it has run. False: it counts as missed or skipped
    already, since its worker was thought dead, and its run is not to be stored.
    """
    tick = {"due_at": run.due_at, "target": run.target, "location": run.location, "result": result}
    stands = (await connection.execute(_TELL_STORED, tick)).scalar()
    return stands is None or stands in STORED


async def settle_lost(connection: AsyncConnection, *, now: datetime) -> int:
    """Ticks that were taken long ago and of which nothing was heard, since everybody who knew has died, are missed (a stored
    run would have told). Returns how many.
    """
    return len((await connection.execute(_LOST, {"before": now - LOST_AFTER})).all())


async def fold_counts(connection: AsyncConnection) -> None:
    """Count for good what was told; after that, its claims may go."""
    await connection.execute(_FOLD)


async def tick_counts(connection: AsyncConnection) -> dict[str, int]:
    """Result -> ticks, ever."""
    return {row.result: row.n for row in await connection.execute(_COUNTS)}
