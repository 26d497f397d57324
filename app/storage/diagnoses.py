"""Diagnoses as the worker sees them: taken one at a time, renewed while they run, finished once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from app.storage.database import Database

LOST_AFTER = timedelta(minutes=10)
"""Without a word for this long, the worker is gone: no round takes longer than the total deadline of its calls."""
KEPT = 50
"""Diagnoses of one target at one location that are kept."""

_LOST = text("""
UPDATE diagnoses SET state = 'failed', finished_at = :now, error = 'the worker that ran it is gone'
WHERE state = 'running' AND beat_at < :lost
""")
_TAKE = text("""
UPDATE diagnoses SET state = 'running', owner = :owner, started_at = :now, beat_at = :now
WHERE id = (
  SELECT id FROM diagnoses WHERE state = 'queued' AND location = :location ORDER BY asked_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING id, target, location, question
""")
_BEAT = text("""
UPDATE diagnoses SET beat_at = :now, progress = :progress WHERE id = :id AND owner = :owner AND state = 'running' RETURNING id
""").bindparams(bindparam("progress", type_=JSONB))
_FINISH = text("""
UPDATE diagnoses SET state = :state, finished_at = :now, report = :report, error = :error
WHERE id = :id AND owner = :owner AND state = 'running'
""").bindparams(bindparam("report", type_=JSONB(none_as_null=True)))
_TRIM = text("""
DELETE FROM diagnoses WHERE target = :target AND location = :location AND state IN ('done', 'failed') AND id NOT IN (
  SELECT id FROM diagnoses WHERE target = :target AND location = :location ORDER BY asked_at DESC LIMIT :kept
)
""")
_HEALTHY = text("""
SELECT report FROM diagnoses
WHERE target = :target AND location = :location AND state = 'done' AND report->>'complaint' = 'none'
ORDER BY finished_at DESC LIMIT 1
""")
_SAID = text("SELECT verdict FROM verdicts WHERE target = :target AND location = :location")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A diagnosis that this worker has taken."""

    id: str
    target: str
    location: str
    question: Mapping[str, Any]
    """`budget_tokens`, `tests`."""


@dataclass(slots=True, kw_only=True)
class Diagnoses:
    """The diagnoses of a location. A worker that died leaves its diagnosis failed: it has spent its tokens."""

    database: Database
    owner: str

    async def take(self, location: str, *, now: datetime) -> Asked | None:
        """The oldest that waits, now ours; None where none does."""
        async with self.database.write() as connection:
            await connection.execute(_LOST, {"now": now, "lost": now - LOST_AFTER})
            row = (await connection.execute(_TAKE, {"owner": self.owner, "now": now, "location": location})).first()
        return None if row is None else Asked(id=row.id, target=row.target, location=row.location, question=row.question)

    async def beat(self, diagnosis_id: str, progress: Mapping[str, Any], *, now: datetime) -> bool:
        """Say how far it is; False when it is ours no more."""
        async with self.database.write() as connection:
            told = {"id": diagnosis_id, "owner": self.owner, "now": now, "progress": dict(progress)}
            return (await connection.execute(_BEAT, told)).first() is not None

    async def finish(self, asked: Asked, *, now: datetime, report: Mapping[str, Any] | None, error: str | None = None) -> None:
        """Keep the report, or why there is none; the oldest of the target go."""
        state = "failed" if report is None else "done"
        async with self.database.write() as connection:
            await connection.execute(
                _FINISH,
                {
                    "id": asked.id, "owner": self.owner, "now": now, "state": state, "error": error,
                    "report": None if report is None else dict(report),
                },
            )  # fmt: skip
            await connection.execute(_TRIM, {"target": asked.target, "location": asked.location, "kept": KEPT})

    async def healthy(self, asked: Asked) -> Mapping[str, Any] | None:
        """The report of the last diagnosis of that target and location that had nothing to complain of."""
        async with self.database.read() as connection:
            row = (await connection.execute(_HEALTHY, {"target": asked.target, "location": asked.location})).first()
        return None if row is None else row.report

    async def verdict(self, asked: Asked) -> Mapping[str, Any] | None:
        """What is said of the target at that location now, as stored."""
        async with self.database.read() as connection:
            row = (await connection.execute(_SAID, {"target": asked.target, "location": asked.location})).first()
        return None if row is None else row.verdict
