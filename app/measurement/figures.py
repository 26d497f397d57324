"""The figures of a run: marks and stamps first, every subtraction once."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass
from statistics import median

from app.measurement.model import Gaps, Phases, TokenSource
from app.measurement.recording import Marks, Tape
from app.measurement.stream import Output, Stream
from app.measurement.usage import Counts
from app.units import NS_PER_S

MIN_TOKENS = 16
MIN_READS = 3
MIN_WINDOW = 0.05
STALL_FLOOR_S = 1.0
STALL_FACTOR = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The reads that brought output: when each came, how many events and tokens it completed."""

    stamps: tuple[int, ...] = ()
    events: tuple[int, ...] = ()
    tokens: tuple[float, ...] = ()


def stamp_at(tape: Tape, offset: int) -> int:
    """The stamp of the read that brought the byte before `offset`."""
    index = bisect_left(tape.ends, offset)
    return tape.stamps[min(index, len(tape.stamps) - 1)]


def output_tokens(stream: Stream, counts: Counts) -> tuple[int | None, TokenSource | None]:
    """How many output tokens, and who says so: usage, else the number of output events."""
    if counts.output_tokens:
        return counts.output_tokens, TokenSource.USAGE
    if stream.outputs:
        return len(stream.outputs), TokenSource.CHUNKS
    return (0, TokenSource.USAGE) if counts.completion_tokens == 0 else (None, None)


def reads_of(tape: Tape, outputs: list[Output], tokens: int | None) -> Reads:
    """Output events grouped by the read that completed them."""
    if not outputs or not len(tape.stamps):
        return Reads()
    shares = _shares(outputs, tokens or len(outputs))
    stamps, events, weights = array("q"), array("q"), array("d")
    ends, final, last, index = tape.ends, len(tape.stamps) - 1, -1, 0
    for output, share in zip(outputs, shares, strict=True):
        while index < final and ends[index] < output.end:
            index += 1
        if index != last:
            stamps.append(tape.stamps[index])
            events.append(0)
            weights.append(0.0)
            last = index
        events[-1] += 1
        weights[-1] += share
    return Reads(stamps=tuple(stamps), events=tuple(events), tokens=tuple(weights))


def _shares(outputs: list[Output], tokens: int) -> list[float]:
    """Tokens of each output event: one each where they are as many, else incremental usage, else by characters."""
    if len(outputs) == tokens:
        return [1.0] * tokens
    so_far = [each.usage_so_far for each in outputs]
    known = [n for n in so_far if n is not None]
    if len(known) == len(so_far) and known == sorted(known) and known[-1] and known[0] and known[0] < known[-1]:
        factor = tokens / known[-1]
        return [(b - a) * factor for a, b in zip([0, *known[:-1]], known, strict=True)]
    chars = sum(each.chars for each in outputs)
    if not chars:
        return [tokens / len(outputs)] * len(outputs)
    return [tokens * each.chars / chars for each in outputs]


def decode_tps(reads: Reads, tokens: int | None, *, sent: int | None) -> tuple[float | None, str | None]:
    """Tokens per second after the first output read, or why there is no such figure."""
    if tokens is None or tokens < MIN_TOKENS:
        return None, "few_tokens"
    if len(reads.stamps) < MIN_READS:
        return None, "few_reads"
    window = reads.stamps[-1] - reads.stamps[0]
    until_last = reads.stamps[-1] - (sent if sent is not None else reads.stamps[0])
    if window <= 0 or window < MIN_WINDOW * until_last:
        return None, "short_window"
    return (tokens - reads.tokens[0]) / (window / NS_PER_S), None


def gaps_of(reads: Reads) -> Gaps:
    """The times between consecutive output reads."""
    spans = sorted((b - a) / NS_PER_S for a, b in zip(reads.stamps, reads.stamps[1:], strict=False))
    if not spans:
        return Gaps()
    limit = max(STALL_FLOOR_S, STALL_FACTOR * median(spans))
    return Gaps(
        p50_s=_rank(spans, 0.50),
        p95_s=_rank(spans, 0.95),
        p99_s=_rank(spans, 0.99),
        max_s=spans[-1],
        stalls=sum(span > limit for span in spans),
    )


def _rank(ordered: list[float], q: float) -> float:
    """A percentile, interpolated between both ranks."""
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def phases_of(marks: Marks) -> Phases:
    """The connection's phases; with the stream they sum to the total. What did not happen is None."""
    dns = _span(marks.dns_start, marks.dns_end)
    reached = marks.dns_end if marks.dns_end is not None else marks.started
    connect = _span(reached, marks.connected)
    tls = _span(marks.connected, marks.tls_done)
    ready = next((m for m in (marks.tls_done, marks.connected) if m is not None), marks.started)
    return Phases(
        dns_s=dns,
        connect_s=connect,
        tls_s=tls,
        send_s=_span(ready, marks.request_sent),
        wait_s=_span(marks.request_sent, marks.headers),
    )


def _span(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None else max(0, end - start) / NS_PER_S


def since(sent: int | None, stamp: int | None) -> float | None:
    """Seconds from the request's last byte to a stamp."""
    return _span(sent, stamp)
