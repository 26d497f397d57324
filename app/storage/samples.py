"""Samples out of rows: the columns of the covering index, and the notes of those few where a verdict needs them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import case

from app.measurement.model import Outcome
from app.measurement.window import Sample
from app.storage.tables import runs
from app.targets.model import Connection

SAMPLE_COLUMNS = (
    runs.c.started_at,
    runs.c.outcome,
    runs.c.error_class,
    runs.c.connection,
    runs.c.ttft_s,
    runs.c.ttft_reliable,
    runs.c.decode_tps,
    runs.c.tps_reliable,
    runs.c.e2e_s,
    runs.c.connect_s,
    runs.c.tls_s,
    runs.c.output_tokens,
    runs.c.contaminated,
    case((runs.c.outcome == Outcome.EMPTY, runs.c.measurement["notes"])).label("notes"),
)


def sample_of(row: Any) -> Sample:  # noqa: ANN401 - a row with SAMPLE_COLUMNS
    """The sample of a row that has `SAMPLE_COLUMNS`."""
    return Sample(
        started_at=row.started_at,
        outcome=Outcome(row.outcome),
        error_class=row.error_class,
        connection=Connection(row.connection),
        ttft_s=row.ttft_s,
        ttft_reliable=row.ttft_reliable,
        decode_tps=row.decode_tps,
        tps_reliable=row.tps_reliable,
        e2e_s=row.e2e_s,
        connect_s=row.connect_s,
        tls_s=row.tls_s,
        output_tokens=row.output_tokens,
        contaminated=row.contaminated,
        notes=tuple(row.notes or ()),
    )
