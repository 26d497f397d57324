"""A tick: one due probe of one target at one location. Its identity makes a second enqueue, and a second run, harmless."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import msgspec


class TickResult(StrEnum):
    """What became of a tick; the values of the label `result` of `bandwatch_scheduler_ticks_total`."""

    RUN = "run"
    LATE = "late"
    MISSED = "missed"
    SKIPPED_BUDGET = "skipped_budget"
    SKIPPED_PAUSED = "skipped_paused"
    SKIPPED_OVERLAP = "skipped_overlap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """(`target`, `location`, `due_at`); `asked` marks a probe on demand, which has no grid instant and no grace."""

    target: str
    location: str
    due_at: datetime
    asked: bool = False

    @property
    def key(self) -> str:
        """The identity as text; PgQueuer refuses a second job that has it."""
        return f"{self.target}|{self.location}|{self.due_at.astimezone(UTC).isoformat()}"


def encode(tick: Tick) -> bytes:
    """The job's payload."""
    return msgspec.json.encode(tick)


def decode(payload: bytes) -> Tick:
    """The tick of a payload.

    Raises:
        ValueError: when the payload is not one of ours.
    """
    try:
        return msgspec.json.decode(payload, type=Tick)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a tick: {error}") from error
