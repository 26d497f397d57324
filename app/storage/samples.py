"""Samples out of the columns of the covering index, read as one array a column."""

from __future__ import annotations

from typing import Any

import msgspec

from app.measurement.model import Outcome
from app.measurement.window import Sample
from app.targets.model import Connection

_COLUMNS = (
    "location",
    "started_at",
    "outcome",
    "connection",
    "error_class",
    "ttft_s",
    "ttft_reliable",
    "decode_tps",
    "tps_reliable",
    "e2e_s",
    "connect_s",
    "tls_s",
    "output_tokens",
    "contaminated",
)
SAMPLE_ARRAYS = ", ".join(
    (
        *(f"array_agg(r.{name}) AS {name}" for name in _COLUMNS),
        "array_agg(CASE WHEN r.outcome = 'empty' THEN r.measurement->>'notes' END) AS notes",
    )
)
"""Select list over rows `r` of runs, newest first: one row of equally long arrays, all NULL where there is no run."""
_OUTCOMES = {str(outcome): outcome for outcome in Outcome}
_CONNECTIONS = {str(connection): connection for connection in Connection}


def samples_by_location(row: Any) -> dict[str, tuple[Sample, ...]]:  # noqa: ANN401 - a row with SAMPLE_ARRAYS
    """Location -> its samples, oldest first."""
    found: dict[str, list[Sample]] = {}
    if row.location is None:
        return {}
    columns = [getattr(row, name) for name in (*_COLUMNS, "notes")]
    for place, at, outcome, connection, error, ttft, ttft_ok, tps, tps_ok, e2e, connect, tls, tokens, spoilt, notes in zip(
        *columns, strict=True
    ):
        found.setdefault(place, []).append(
            Sample(
                started_at=at,
                outcome=_OUTCOMES[outcome],
                connection=_CONNECTIONS[connection],
                error_class=error,
                ttft_s=ttft,
                ttft_reliable=ttft_ok,
                decode_tps=tps,
                tps_reliable=tps_ok,
                e2e_s=e2e,
                connect_s=connect,
                tls_s=tls,
                output_tokens=tokens,
                contaminated=spoilt,
                notes=() if notes is None else msgspec.json.decode(notes, type=tuple[str, ...]),
            )
        )
    return {place: tuple(reversed(samples)) for place, samples in found.items()}
