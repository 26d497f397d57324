"""What a decision may look at, in one statement: the present verdict, open incidents, and the samples of its windows.

One statement and arrays instead of rows, because this runs for every result: of a row, most of the cost is the row
(`benchmarks/store_cost.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.measurement.model import Run
from app.measurement.window import Sample
from app.storage.samples import SAMPLE_ARRAYS, samples_by_location
from app.targets.model import Target, Thresholds
from app.verdict.model import Incident, Trail, Verdict
from app.verdict.outbox import Past

SAMPLES = 600
"""The most samples of one location that a decision looks at."""
BASELINE = timedelta(days=7)
BASELINE_SAMPLES = 400
BASELINE_FRESH = timedelta(minutes=15)
"""A week's baseline is read again after this long; it moves by a thousandth meanwhile."""
SKEW = timedelta(days=1)
"""Runs start near the instant they were due; far enough for results that were spooled. Lets Postgres skip partitions."""
AHEAD = timedelta(minutes=1)
"""Runs that began this much after a run ended are of a time before the clock was set back, and say nothing of now."""

_READ = text(f"""
SELECT v.due_at, v.verdict::text AS verdict, v.trail::text AS trail, i.incidents::text AS incidents, s.*
FROM (SELECT 1) AS one
LEFT JOIN verdicts v ON v.target = :target AND v.location = :location
LEFT JOIN LATERAL (
  SELECT jsonb_agg(to_jsonb(o) - 'verdict' ORDER BY o.opened_at, o.id) AS incidents
  FROM incidents o WHERE o.target = :target AND o.location = :location AND o.state = 'open'
) i ON true
LEFT JOIN LATERAL (
  SELECT {SAMPLE_ARRAYS} FROM (
    SELECT * FROM runs
    WHERE target = :target AND location = ANY(CAST(:locations AS text[])) AND started_at > :since AND started_at < :until
      AND due_at > :due_from AND due_at < :due_to
    ORDER BY started_at DESC LIMIT :most
  ) r
) s ON true
""")  # noqa: S608 - a constant
_BASELINE = text(f"""
SELECT {SAMPLE_ARRAYS} FROM (
  SELECT DISTINCT ON (floor(extract(epoch FROM started_at) / :step)) * FROM runs
  WHERE target = :target AND location = :location AND started_at > :since AND started_at <= :until
    AND due_at > :due_from AND due_at < :due_to AND outcome = 'ok' AND NOT contaminated
  ORDER BY floor(extract(epoch FROM started_at) / :step) DESC, started_at DESC
) r
""")  # noqa: S608 - a constant


@dataclass(slots=True)
class PastReader:
    """Reads pasts, and keeps the baselines that it read lately."""

    _baselines: dict[tuple[str, str], tuple[datetime, tuple[Sample, ...]]] = field(default_factory=dict)

    async def read(
        self, connection: AsyncConnection, run: Run, *, target: Target, thresholds: Thresholds
    ) -> tuple[Past, datetime | None]:
        """The past of a run that is stored already, and the due time that the present verdict rests on."""
        window = timedelta(seconds=thresholds.window_for(target.every_s))
        since = run.started_at - timedelta(seconds=thresholds.past_for(target.every_s))
        places = sorted({run.location, *target.locations})
        found = await connection.execute(
            _READ,
            {
                "target": run.target,
                "location": run.location,
                "locations": places,
                "since": since,
                "until": run.finished_at + AHEAD,
                "due_from": since - SKEW,
                "due_to": run.due_at + SKEW,
                "most": SAMPLES * len(places),
            },
        )
        row: Any = found.one()
        samples = samples_by_location(row)
        own = samples.pop(run.location, ())
        cut = run.started_at - window
        past = Past(
            samples=own[-SAMPLES:],
            baseline=await self._baseline(connection, run, until=since),
            previous=None if row.verdict is None else msgspec.json.decode(row.verdict, type=Verdict),
            trail=Trail() if row.trail is None else msgspec.json.decode(row.trail, type=Trail),
            open_incidents=() if row.incidents is None else msgspec.json.decode(row.incidents, type=tuple[Incident, ...]),
            locations={place: tuple(s for s in theirs if s.started_at > cut) for place, theirs in samples.items()},
        )
        return past, row.due_at

    async def _baseline(self, connection: AsyncConnection, run: Run, *, until: datetime) -> tuple[Sample, ...]:
        """Up to `BASELINE_SAMPLES` successful samples of the week before `until`, evenly thinned, oldest first."""
        key = (run.target, run.location)
        kept = self._baselines.get(key)
        if kept is not None and abs(run.started_at - kept[0]) < BASELINE_FRESH:
            return kept[1]
        found = await connection.execute(
            _BASELINE,
            {
                "target": run.target,
                "location": run.location,
                "since": until - BASELINE,
                "until": until,
                "due_from": until - BASELINE - SKEW,
                "due_to": until + SKEW,
                "step": BASELINE.total_seconds() / BASELINE_SAMPLES,
            },
        )
        samples = samples_by_location(found.one()).get(run.location, ())
        self._baselines[key] = (run.started_at, samples)
        return samples
