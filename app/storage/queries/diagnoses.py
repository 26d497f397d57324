"""Diagnoses as people see them: asked for, followed, read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from app.errors import ConflictError
from app.storage import tables
from app.storage.queries.session import ReadSession, WriteSession


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisRow:
    """One diagnosis. `progress` tells experiment, rounds done, and of how many; `report` is there once it is done."""

    id: str
    target: str
    location: str
    state: str
    asked_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: Mapping[str, Any] | None
    error: str | None
    report: Mapping[str, Any] | None


_SHOWN = [tables.diagnoses.c[name] for name in DiagnosisRow.__dataclass_fields__]


async def ask(
    session: WriteSession, diagnosis_id: str, *, target: str, location: str, question: Mapping[str, Any], now: datetime
) -> DiagnosisRow:
    """Queue a diagnosis.

    Raises:
        ConflictError: one of that target and location waits or runs already.
    """
    t = tables.diagnoses
    stated = {"id": diagnosis_id, "target": target, "location": location, "state": "queued", "asked_at": now}
    added = await session.connection.execute(
        insert(t).values(**stated, question=dict(question)).on_conflict_do_nothing().returning(*_SHOWN)
    )
    row = added.first()
    if row is None:
        raise ConflictError(f"a diagnosis of '{target}' from {location} is under way")
    return _row(row)


async def list_diagnoses(session: ReadSession, target: str, *, limit: int) -> Sequence[DiagnosisRow]:
    """The diagnoses of a target, the latest first."""
    t = tables.diagnoses
    found = await session.connection.execute(
        select(*_SHOWN).where(t.c.target == target).order_by(t.c.asked_at.desc(), t.c.id).limit(limit)
    )
    return [_row(row) for row in found]


def _row(row: Any) -> DiagnosisRow:  # noqa: ANN401 - a row of the table
    return DiagnosisRow(**{name: getattr(row, name) for name in DiagnosisRow.__dataclass_fields__})
