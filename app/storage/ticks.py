"""What became of ticks: told once each, counted for good."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

LOST_AFTER = timedelta(minutes=10)
"""Longer than any probe, and than a worker waits for a database that is away."""
_COUNT = text("INSERT INTO tick_counts VALUES (:result, :n) ON CONFLICT (result) DO UPDATE SET n = tick_counts.n + excluded.n")
_FINISH = text("""
INSERT INTO claims VALUES (:due_at, :target, :location, '', :now, 0, :result)
ON CONFLICT (due_at, target, location) DO UPDATE SET result = excluded.result WHERE claims.result IS NULL
RETURNING 1
""")
_LOST = text("""
UPDATE claims c SET result = CASE WHEN EXISTS (
  SELECT FROM runs r WHERE r.due_at = c.due_at AND r.target = c.target AND r.location = c.location
) THEN 'run' ELSE 'missed' END
WHERE c.result IS NULL AND c.claimed_at < :before
RETURNING c.result
""")


async def count_ticks(connection: AsyncConnection, result: str, n: int) -> None:
    """Add to the count of ticks with that result."""
    await connection.execute(_COUNT, {"result": result, "n": n})


async def finish_tick(
    connection: AsyncConnection, *, target: str, location: str, due_at: datetime, result: str, now: datetime
) -> bool:
    """Note what became of a tick, and count it. False: it was known already, and nothing changes."""
    tick = {"due_at": due_at, "target": target, "location": location, "now": now, "result": result}
    if (await connection.execute(_FINISH, tick)).first() is None:
        return False
    await count_ticks(connection, result, 1)
    return True


async def settle_lost(connection: AsyncConnection, *, now: datetime) -> int:
    """Ticks that were taken long ago and of which nothing was heard, since everybody who knew has died: missed, unless
    their run is there. Returns how many.
    """
    results = list((await connection.execute(_LOST, {"before": now - LOST_AFTER})).scalars())
    for result in sorted(set(results)):
        await count_ticks(connection, result, results.count(result))
    return len(results)
