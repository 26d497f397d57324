"""A recorded body, read as a probe would have read it: the object of `bandwatch replay --json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from app.measurement.measure import measure_stream
from app.measurement.model import Measurement
from app.measurement.recording import Marks, Recording, StampSource, Tape
from app.measurement.stream import read_stream
from app.measurement.usage import count


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A body and what is known of its response."""

    body: bytes
    status: int = 200
    content_type: str | None = None
    headers: Mapping[str, str] | None = None
    read_sizes: Iterable[int] | None = None


def recording_of(recorded: Recorded, *, now: datetime) -> Recording:
    """The recording that a probe would have made of it, without times."""
    headers = {name.lower(): value for name, value in (recorded.headers or {}).items()}
    if recorded.content_type is not None:
        headers["content-type"] = recorded.content_type
    return Recording(
        base_url="",
        model="",
        recipe="",
        dialect="",
        marks=Marks(started=0),
        started_at=now,
        tape=Tape.replayed(recorded.body, read_sizes=recorded.read_sizes),
        status=recorded.status,
        headers=tuple(headers.items()),
        ended=True,
    )


def replay(recorded: Recorded, *, file: str, now: datetime) -> dict[str, Any]:
    """Every field of `bandwatch replay --json` for one file."""
    return replay_recording(recording_of(recorded, now=now), file=file)


def replay_recording(recording: Recording, *, file: str) -> dict[str, Any]:
    """The same for a kept recording."""
    stream = read_stream(recording.tape.body, content_type=recording.header("content-type"))
    measurement = measure_stream(recording, stream).measurement
    counts = count(stream.usages)
    plain = stream.kind == "plain"
    content, reasoning = "".join(stream.content), "".join(stream.reasoning)
    return {
        "file": file,
        "outcome": measurement.outcome.value,
        "error_class": measurement.error_class.value,
        "error_text": measurement.error_text,
        "http_status": recording.status,
        "finish_reason": measurement.finish_reason,
        "done_seen": stream.done_seen,
        "error_seen": bool(stream.errors),
        "events": stream.events,
        **{f"first_{name}_index": stream.first.get(name) for name in _FIRST},
        "content_chars": len(content),
        "content_sha256": sha256(content.encode("utf-8", "surrogatepass")).hexdigest(),
        "reasoning_chars": len(reasoning),
        "reasoning_sha256": sha256(reasoning.encode("utf-8", "surrogatepass")).hexdigest() if reasoning else None,
        "prompt_tokens": counts.prompt_tokens,
        "completion_tokens": counts.completion_tokens,
        "reasoning_tokens": counts.reasoning_tokens,
        "cached_tokens": counts.cached_tokens,
        "output_tokens": None if plain else measurement.output_tokens,
        "token_source": None if plain or measurement.token_source is None else measurement.token_source.value,
        "server_timings": dict(measurement.server_timings),
        "retry_after_s": measurement.retry_after_s,
        "reliable": {"ttft": measurement.reliable.ttft, "tps": measurement.reliable.tps},
        "notes": list(measurement.notes),
        "figures": None if recording.stamp_source is StampSource.NONE else _figures(measurement),
    }


def _figures(m: Measurement) -> dict[str, Any]:
    """What only a recording with times has."""
    return {
        "phases": asdict(m.phases),
        **{name: getattr(m, name) for name in _TIMED},
        "gaps": asdict(m.gaps),
        "unreliable_because": {name: list(why) for name, why in m.unreliable_because.items()},
    }


_TIMED = (
    "presend_s",
    "ttft_s",
    "ttft_visible_s",
    "decode_tps",
    "tpot_s",
    "e2e_s",
    "e2e_tps",
    "stream_end_s",
    "total_s",
    "tokens_per_read",
    "loop_lag_s",
)


_FIRST = ("output", "refusal", "reasoning", "content", "visible", "tool")
