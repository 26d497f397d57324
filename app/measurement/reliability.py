"""Which figures of a run can be relied on, and the reason codes that say why not.

A reason code is a note; some notes spoil a figure, and `Doubts` says which. docs/measurement.md lists them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.measurement.classify import Classified
from app.measurement.figures import Reads
from app.measurement.model import Outcome, TokenSource
from app.measurement.recording import Recording, StampSource
from app.measurement.stream import Stream
from app.measurement.usage import Counts
from app.units import NS_PER_S

MOVED = 0.05
"""What could have moved a figure by more than this share spoils it."""
CHARS_PER_TOKEN = 40.0
CACHED_SHARE = 0.5
PHANTOMS = 5
"""So many empty deltas are no role chunk and its like; they stand for tokens that nobody sees."""
SEEN_SHARE = 0.8
"""With fewer output events than this share of the tokens, empty deltas may have been the rest."""
BUNDLE = 4
"""Tokens in the first output read from which it is a bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What figures are made of: the recording, what its body says, and the output by reads."""

    recording: Recording
    stream: Stream
    counts: Counts
    tokens: int | None
    source: TokenSource | None
    reads: Reads
    """Empty where nobody stamped the reads."""
    read_events: tuple[int, ...] = ()
    """Output events of each output read, stamped or not."""

    @property
    def timed(self) -> bool:
        """Did anybody stamp the reads?"""
        return self.recording.stamp_source is not StampSource.NONE

    @property
    def hidden(self) -> bool:
        """Was reasoning billed and none of it streamed?"""
        return bool(self.counts.reasoning_tokens) and "reasoning" not in self.stream.first and self.stream.think is None

    @property
    def window_s(self) -> float:
        """From the first output read to the last."""
        return (self.reads.stamps[-1] - self.reads.stamps[0]) / NS_PER_S if self.reads.stamps else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """All reason codes of a run, and those that spoil each figure."""

    notes: frozenset[str]
    ttft: frozenset[str]
    tps: frozenset[str]


def doubts(f: Facts, found: Classified, *, ttft_s: float | None, tps: float | None, why: str | None) -> Doubts:
    """Judge the figures of a run. `why` says why there is no decode speed."""
    plain = {*f.counts.notes, *f.recording.request_notes, *_remarks(f, found)}
    first, speed = set(_of_ttft(f, ttft_s=ttft_s, tps=tps)), set(_of_tps(f))
    if why is not None:
        speed.add(why)
    return Doubts(notes=frozenset(plain | first | speed), ttft=frozenset(first), tps=frozenset(speed))


def _remarks(f: Facts, found: Classified) -> Iterator[str]:
    """Codes that spoil nothing by themselves."""
    if f.counts.cached_tokens:
        yield "cached_prompt"
    if f.stream.think is not None:
        yield "inline_think"
    if max(f.read_events, default=0) > 1:
        yield "coalesced_reads"
    if f.reads.tokens and len(f.reads.tokens) > 1 and f.reads.tokens[0] >= BUNDLE:
        yield "bundled_first_read"
    if f.stream.empty_deltas >= max(PHANTOMS, len(f.stream.outputs) // 2):
        yield "phantom_chunks"
    if found.outcome is Outcome.EMPTY and f.stream.finish_reason == "length" and f.counts.completion_tokens:
        yield "budget_spent_on_reasoning"
    if found.outcome is Outcome.OK and not f.stream.done_seen:
        yield "no_done"


def _of_ttft(f: Facts, *, ttft_s: float | None, tps: float | None) -> Iterator[str]:
    if f.hidden:
        yield "hidden_reasoning"
    if _unseen(f, f.stream.empty_before_output):
        yield "phantom_chunks"
    if f.timed and len(f.read_events) == 1 and (f.tokens or 0) >= 2:
        yield "buffered_by_proxy"
    if _mostly_cached(f):
        yield "cached_prompt"
    if ttft_s is None:
        return
    if tps and f.tokens and f.read_events[0] > 1:
        per_event_s = f.tokens / sum(f.read_events) / tps
        if (f.read_events[0] - 1) * per_event_s > MOVED * ttft_s:
            yield "coalesced_first_read"
    if _lag(f, 0) > MOVED * ttft_s:
        yield "contaminated"


def _of_tps(f: Facts) -> Iterator[str]:
    yield from {"usage_zero", "usage_contradictory", "no_usage"} & set(f.counts.notes)
    if f.hidden:
        yield "hidden_reasoning"
    if _unseen(f, f.stream.empty_deltas):
        yield "phantom_chunks"
    if _disagrees(f):
        yield "usage_disagrees_with_text"
    if f.reads.stamps and max(_lag(f, 0), _lag(f, -1)) > MOVED * f.window_s:
        yield "contaminated"


def _unseen(f: Facts, empty: int) -> bool:
    """Do empty deltas stand for tokens that were billed and not streamed?"""
    return empty >= PHANTOMS and len(f.stream.outputs) < SEEN_SHARE * (f.tokens or 0)


def _disagrees(f: Facts) -> bool:
    """Usage that cannot belong to the text: fewer tokens than events, or far too many characters for a token."""
    if f.source is not TokenSource.USAGE or not f.tokens or not f.stream.outputs:
        return False
    chars = sum(each.chars for each in f.stream.outputs)
    return len(f.stream.outputs) > f.tokens * 1.25 + 4 or chars > f.tokens * CHARS_PER_TOKEN + 200


def _lag(f: Facts, read: int) -> float:
    """By how many seconds the host's lag may have moved the stamp of an output read.

    A kernel stamp stays right while the loop is late, unless several chunks fell into the read that bears it.
    """
    lag = f.recording.host.loop_lag_max_s or 0.0
    kernel = f.recording.stamp_source is StampSource.KERNEL
    return 0.0 if kernel and f.read_events[read] == 1 else lag


def _mostly_cached(f: Facts) -> bool:
    """Was most of the prompt not prefilled? Then TTFT is not a cold one."""
    if f.recording.recipe == "warm-prefix":
        return False
    return (f.counts.cached_tokens or 0) > CACHED_SHARE * (f.counts.prompt_tokens or 1e9)
