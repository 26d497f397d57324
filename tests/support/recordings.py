"""Recordings out of written streams: what a server sends when, as a probe would have taped it with exact stamps."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime

from app.measurement.measure import measure
from app.measurement.model import Measurement
from app.measurement.recording import Failure, FailureKind, HostHealth, Marks, Recording, StampSource, Tape

MS = 1_000_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Writes = Sequence[tuple[float, bytes]]


def recording(
    writes: Writes,
    *,
    status: int = 200,
    content_type: str | None = "text/event-stream",
    headers: Sequence[tuple[str, str]] = (),
    failure: FailureKind | None = None,
    sent_ms: float = 0.0,
    recipe: str = "chat-short",
    stamps: StampSource = StampSource.KERNEL,
    lag_s: float | None = None,
    now: datetime = NOW,
    notes: tuple[str, ...] = (),
) -> Recording:
    """Writes as (milliseconds after the request's last byte, bytes)."""
    body, times, ends = b"", array("q"), array("q")
    for at, raw in writes:
        body += raw
        times.append(int((sent_ms + at) * MS))
        ends.append(len(body))
    kind = () if content_type is None else (("content-type", content_type),)
    return Recording(
        base_url="https://provider.example/v1",
        model="m",
        recipe=recipe,
        dialect="generic",
        marks=Marks(started=0, request_sent=int(sent_ms * MS), closed=times[-1] if len(times) else int(sent_ms * MS)),
        started_at=now,
        tape=Tape(body=body, stamps=times, ends=ends),
        status=status,
        headers=(*kind, *headers),
        ended=failure is None,
        failure=None if failure is None else Failure(kind=failure, text=failure.value),
        stamp_source=stamps,
        host=HostHealth(loop_lag_p99_s=lag_s, loop_lag_max_s=lag_s),
        request_notes=notes,
    )


def read(
    writes: Writes,
    *,
    status: int = 200,
    content_type: str | None = "text/event-stream",
    headers: Sequence[tuple[str, str]] = (),
    failure: FailureKind | None = None,
    recipe: str = "chat-short",
    lag_s: float | None = None,
    stamps: StampSource = StampSource.KERNEL,
) -> Measurement:
    """The measurement of such a recording."""
    made = recording(
        writes,
        status=status,
        content_type=content_type,
        headers=headers,
        failure=failure,
        recipe=recipe,
        lag_s=lag_s,
        stamps=stamps,
    )
    return measure(made).measurement
