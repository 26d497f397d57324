"""Recording -> Reading: the one function that turns bytes and stamps into figures. Pure, and the same for replays."""

from __future__ import annotations

from app.measurement.classify import Classified, classify
from app.measurement.complaint import label
from app.measurement.figures import (
    Reads,
    decode_tps,
    gaps_of,
    output_tokens,
    phases_of,
    reads_of,
    since,
    stamp_at,
)
from app.measurement.limits import number, rate_limits, retry_after_s
from app.measurement.model import Measurement, Outcome, Reading, Reliable
from app.measurement.recording import Recording, StampSource
from app.measurement.reliability import Facts, doubts
from app.measurement.stream import Stream, read_stream
from app.measurement.usage import count
from app.units import NS_PER_S

HEADER_TIMINGS = {"fireworks-server-time-to-first-token": ("ttft_s", 1.0), "openai-processing-ms": ("total_s", 0.001)}


def measure(recording: Recording) -> Reading:
    """Every figure of a run; never fails, whatever the bytes are."""
    stream = read_stream(recording.tape.body, content_type=recording.header("content-type"))
    return measure_stream(recording, stream)


def measure_stream(recording: Recording, stream: Stream) -> Reading:
    """The figures of a stream that has been read."""
    counts = count(stream.usages)
    tokens, source = output_tokens(stream, counts)
    reads = reads_of(recording.tape, stream.outputs, tokens)
    facts = Facts(
        recording=recording,
        stream=stream,
        counts=counts,
        tokens=tokens,
        source=source,
        reads=Reads() if recording.stamp_source is StampSource.NONE else reads,
        read_events=reads.events,
    )
    sent = recording.marks.request_sent or 0
    return Reading(
        measurement=_measurement(facts, classify(recording, stream)),
        read_stamps_s=tuple((stamp - sent) / NS_PER_S for stamp in reads.stamps),
        read_tokens=reads.tokens,
    )


def _measurement(f: Facts, found: Classified) -> Measurement:
    recording, stream, marks, reads = f.recording, f.stream, f.recording.marks, f.reads
    sent = marks.request_sent
    first = reads.stamps[0] if reads.stamps else None
    last = reads.stamps[-1] if reads.stamps else None
    tps, why = (None, None) if f.hidden else decode_tps(reads, f.tokens, sent=sent)
    ttft, e2e = since(sent, first), since(sent, last)
    usable = found.outcome is Outcome.OK
    doubt = doubts(f, found, ttft_s=ttft, tps=tps, why=why if usable and f.timed else None)
    return Measurement(
        outcome=found.outcome,
        error_class=found.error_class,
        error_text=found.text,
        http_status=recording.status,
        finish_reason=label(stream.finish_reason),
        connection=recording.connection,
        stamp_source=recording.stamp_source,
        phases=phases_of(marks),
        presend_s=since(marks.started, sent),
        ttft_s=ttft,
        ttft_visible_s=since(sent, _mark(f, "visible")),
        decode_tps=tps,
        tpot_s=None if not tps else 1.0 / tps,
        e2e_s=e2e,
        e2e_tps=f.tokens / e2e if e2e and f.tokens else None,
        stream_end_s=since(sent, _stream_end(f)),
        total_s=since(marks.started, marks.closed),
        gaps=gaps_of(reads),
        output_tokens=f.tokens,
        reasoning_tokens=_at_most(f.counts.reasoning_tokens, f.tokens),
        prompt_tokens=f.counts.prompt_tokens,
        cached_tokens=f.counts.cached_tokens,
        token_source=f.source,
        output_reads=len(reads.stamps),
        output_events=len(stream.outputs),
        tokens_per_read=f.tokens / len(reads.stamps) if f.tokens and reads.stamps else None,
        events_per_read_max=max(reads.events, default=None),
        server_timings={**_header_timings(recording), **stream.timings},
        retry_after_s=None if usable else retry_after_s(recording.headers, now=recording.started_at),
        rate_limits=rate_limits(recording.headers, now=recording.started_at),
        served_model=label(stream.model),
        served_by=label(stream.served_by),
        reliable=Reliable(
            ttft=usable and ttft is not None and not doubt.ttft,
            tps=usable and tps is not None and not doubt.tps,
        ),
        unreliable_because={"ttft": tuple(sorted(doubt.ttft)), "tps": tuple(sorted(doubt.tps))},
        notes=tuple(sorted(doubt.notes)),
        loop_lag_s=recording.host.loop_lag_max_s,
    )


def _mark(f: Facts, name: str) -> int | None:
    end = f.stream.ends.get(name)
    return None if end is None or not f.timed or not len(f.recording.tape.stamps) else stamp_at(f.recording.tape, end)


def _stream_end(f: Facts) -> int | None:
    if not f.timed or not len(f.recording.tape.stamps):
        return None
    done = _mark(f, "done")
    return done if done is not None else f.recording.tape.stamps[-1]


def _header_timings(recording: Recording) -> dict[str, float]:
    found = {}
    for name, (ours, factor) in HEADER_TIMINGS.items():
        value = number(recording.header(name) or "")
        if value is not None and value >= 0:
            found[ours] = round(value * factor, 9)
    return found


def _at_most(value: int | None, limit: int | None) -> int | None:
    return value if value is None or limit is None else min(value, limit)
