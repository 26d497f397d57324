"""Samples of many runs: what verdicts, series and pages compute their statistics from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.measurement.model import Outcome
from app.targets.model import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a window keeps of one run. Figures are present even where they are unreliable; the flags say so."""

    started_at: datetime
    outcome: Outcome
    connection: Connection = Connection.COLD
    error_class: str = "none"
    ttft_s: float | None = None
    ttft_reliable: bool = False
    decode_tps: float | None = None
    tps_reliable: bool = False
    e2e_s: float | None = None
    connect_s: float | None = None
    """TCP connect: about one round trip."""
    tls_s: float | None = None
    output_tokens: int | None = None
    contaminated: bool = False
    notes: tuple[str, ...] = ()
    """The measurement's reason codes; `budget_spent_on_reasoning` makes an empty run ours to fix."""
