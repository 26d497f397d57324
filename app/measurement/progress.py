"""How far a stream has come, read from the tape so far; asked only when a deadline's timer fires."""

from __future__ import annotations

from dataclasses import dataclass

from app.measurement.figures import stamp_at
from app.measurement.recording import Tape
from app.measurement.stream import read_stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Was there output yet, when did the last of it come, and has the stream said that it is done?"""

    has_output: bool
    last_output_ns: int | None
    done: bool


def progress(tape: Tape, *, content_type: str | None = None) -> Progress:
    """Comments and empty deltas are no progress."""
    stream = read_stream(tape.body, content_type=content_type)
    last = stream.outputs[-1].end if stream.outputs else None
    return Progress(
        has_output=last is not None,
        last_output_ns=None if last is None else stamp_at(tape, last),
        done=stream.done_seen,
    )
