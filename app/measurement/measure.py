"""Recording -> Reading: the one function that turns bytes and stamps into figures. Pure, and the same for replays."""

from __future__ import annotations

from dataclasses import dataclass

from app.measurement.classify import Classified, classify
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
from app.measurement.limits import rate_limits, retry_after_s
from app.measurement.model import Measurement, Outcome, Reading, Reliable, TokenSource
from app.measurement.recording import Recording, StampSource
from app.measurement.stream import Stream, read_stream
from app.measurement.usage import Counts, count
from app.units import NS_PER_S

CONTAMINATED = 0.05
"""A host lag that could have moved a figure by more than this share contaminates it."""
CHARS_PER_TOKEN = 40.0
CACHED_SHARE = 0.5
HEADER_TIMINGS = {"fireworks-server-time-to-first-token": ("ttft_s", 1.0), "openai-processing-ms": ("total_s", 0.001)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    recording: Recording
    stream: Stream
    counts: Counts
    tokens: int | None
    source: TokenSource | None
    reads: Reads
    hidden: bool
    """Reasoning was billed and none of it was streamed."""


def measure(recording: Recording) -> Reading:
    """Every figure of a run; never fails, whatever the bytes are."""
    stream = read_stream(recording.tape.body, content_type=recording.header("content-type"))
    return measure_stream(recording, stream)


def measure_stream(recording: Recording, stream: Stream) -> Reading:
    """The figures of a stream that has been read."""
    counts = count(stream.usages)
    tokens, source = output_tokens(stream, counts)
    facts = _Facts(
        recording=recording,
        stream=stream,
        counts=counts,
        tokens=tokens,
        source=source,
        reads=reads_of(recording.tape, stream.outputs, tokens),
        hidden=bool(counts.reasoning_tokens) and "reasoning" not in stream.first and stream.think is None,
    )
    found = classify(recording, stream)
    sent = recording.marks.request_sent
    relative = tuple((stamp - (sent or 0)) / NS_PER_S for stamp in facts.reads.stamps)
    return Reading(measurement=_measurement(facts, found), read_stamps_s=relative, read_tokens=facts.reads.tokens)


def _measurement(f: _Facts, found: Classified) -> Measurement:
    recording, stream, marks = f.recording, f.stream, f.recording.marks
    sent = marks.request_sent
    timed = recording.stamp_source is not StampSource.NONE
    reads = f.reads if timed else Reads()
    first = reads.stamps[0] if reads.stamps else None
    last = reads.stamps[-1] if reads.stamps else None
    tps, why = decode_tps(reads, f.tokens, sent=sent)
    if f.hidden:
        tps = None
    notes = _notes(f, found, why if found.outcome is Outcome.OK and timed else None)
    lag = recording.host.loop_lag_max_s or 0.0
    ttft = since(sent, first)
    contaminated = _contaminated(f, lag, ttft, reads)
    notes |= {"contaminated"} if any(contaminated) else set()
    usable = found.outcome is Outcome.OK
    whole = "buffered_by_proxy" in notes
    e2e = since(sent, last)
    return Measurement(
        outcome=found.outcome,
        error_class=found.error_class,
        error_text=found.text,
        http_status=recording.status,
        finish_reason=stream.finish_reason,
        connection=recording.connection,
        stamp_source=recording.stamp_source,
        phases=phases_of(marks),
        presend_s=since(marks.started, sent),
        ttft_s=ttft,
        ttft_visible_s=since(sent, _mark(f, "visible", timed=timed)),
        decode_tps=tps,
        tpot_s=None if not tps else 1.0 / tps,
        e2e_s=e2e,
        e2e_tps=f.tokens / e2e if e2e and f.tokens else None,
        stream_end_s=since(sent, _stream_end(f, timed=timed)),
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
        served_model=stream.model,
        served_by=stream.served_by,
        reliable=Reliable(
            ttft=usable and ttft is not None and not (f.hidden or whole or contaminated[0] or _cached(f)),
            tps=usable
            and tps is not None
            and f.source is TokenSource.USAGE
            and not (contaminated[1] or {"usage_disagrees_with_text", "usage_contradictory"} & notes),
        ),
        notes=tuple(sorted(notes)),
        loop_lag_s=recording.host.loop_lag_max_s,
    )


def _notes(f: _Facts, found: Classified, why: str | None) -> set[str]:
    notes = {*f.counts.notes, *f.recording.request_notes}
    notes |= {why} if why else set()
    if f.hidden:
        notes.add("hidden_reasoning")
    if _disagrees(f):
        notes.add("usage_disagrees_with_text")
    if f.counts.cached_tokens:
        notes.add("cached_prompt")
    if f.stream.think is not None:
        notes.add("inline_think")
    if len(f.reads.events) == 1 and f.recording.stamp_source is not StampSource.NONE and (f.tokens or 0) >= 2:
        notes.add("buffered_by_proxy")
    if f.reads.events and max(f.reads.events) > 1:
        notes.add("coalesced_reads")
    if found.outcome is Outcome.EMPTY and f.stream.finish_reason == "length" and f.counts.completion_tokens:
        notes.add("budget_spent_on_reasoning")
    if found.outcome is Outcome.OK and not f.stream.done_seen:
        notes.add("no_done")
    return notes


def _disagrees(f: _Facts) -> bool:
    """Usage that cannot belong to the text: fewer tokens than events, or far too many characters for a token."""
    if f.source is not TokenSource.USAGE or not f.tokens or not f.stream.outputs:
        return False
    chars = sum(each.chars for each in f.stream.outputs)
    return len(f.stream.outputs) > f.tokens * 1.25 + 4 or chars > f.tokens * CHARS_PER_TOKEN + 200


def _contaminated(f: _Facts, lag: float, ttft: float | None, reads: Reads) -> tuple[bool, bool]:
    """Could the host's lag have moved (TTFT, TPS) by over 5 %?

    A kernel stamp stays right while the loop is late, unless several chunks fell into the read that bears it.
    """
    if not lag or not reads.stamps:
        return False, False
    kernel = f.recording.stamp_source is StampSource.KERNEL
    first = 0.0 if kernel and reads.events[0] == 1 else lag
    last = 0.0 if kernel and reads.events[-1] == 1 else lag
    window = (reads.stamps[-1] - reads.stamps[0]) / NS_PER_S
    return (
        ttft is not None and first > CONTAMINATED * max(ttft, 1e-9),
        max(first, last) > CONTAMINATED * max(window, 1e-9),
    )


def _cached(f: _Facts) -> bool:
    """Was most of the prompt not prefilled? Then TTFT is not a cold one."""
    if f.recording.recipe == "warm-prefix":
        return False
    return (f.counts.cached_tokens or 0) > CACHED_SHARE * (f.counts.prompt_tokens or 1e9)


def _mark(f: _Facts, name: str, *, timed: bool) -> int | None:
    end = f.stream.ends.get(name)
    return None if end is None or not timed or not len(f.recording.tape.stamps) else stamp_at(f.recording.tape, end)


def _stream_end(f: _Facts, *, timed: bool) -> int | None:
    if not timed or not len(f.recording.tape.stamps):
        return None
    done = _mark(f, "done", timed=timed)
    return done if done is not None else f.recording.tape.stamps[-1]


def _header_timings(recording: Recording) -> dict[str, float]:
    found = {}
    for name, (ours, factor) in HEADER_TIMINGS.items():
        try:
            found[ours] = float(recording.header(name) or "") * factor
        except ValueError:
            continue
    return found


def _at_most(value: int | None, limit: int | None) -> int | None:
    return value if value is None or limit is None else min(value, limit)
