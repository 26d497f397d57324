"""The nouns of a diagnosis: calls to make, trials that came of them, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.measurement.model import Measurement, Outcome, Reading
from app.targets.model import Recipe


class Experiment(StrEnum):
    """One experiment."""

    SPECULATION = "speculation"
    """Code and prose, in pairs."""
    STREAMS = "parallel_streams"
    """One, two and four streams at once."""
    LENGTHS = "prompt_lengths"
    """TTFT over five lengths of prompt."""
    CACHE = "prompt_cache"
    """The same prefix twice, in pairs."""


class Cause(StrEnum):
    """What may be behind it."""

    QUEUE = "queue"
    CONTENTION = "contention"
    SPILL = "spill"
    SLOWER_MACHINE = "slower_machine"
    SPECULATION_OFF = "speculation_off"
    CACHE_LOST = "cache_lost"
    NETWORK = "network"
    MONITOR = "monitor"
    SPECULATION = "speculation"
    PROMPT_CACHE = "prompt_cache"
    OTHER_DEPLOYMENT = "other_deployment"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call to make. `arm` is the condition, `pair` the calls that are compared with each other."""

    test: Experiment
    arm: str
    pair: int
    recipe: Recipe

    @property
    def tokens(self) -> int:
        """What it may use, prompt and output."""
        return self.recipe.prompt_tokens + self.recipe.output_tokens


Round = tuple[Call, ...]
"""Calls that begin at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of a call. Times in seconds; figures of a call that failed, or that the monitor spoilt, are None."""

    test: Experiment
    arm: str
    pair: int
    outcome: str
    tokens_used: int = 0
    spoilt: bool = False
    """The monitor itself was late: no figure of it counts."""
    ttft_s: float | None = None
    tps: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    connect_s: float | None = None
    queue_s: float | None = None
    """As the server reports it."""
    stamps_s: tuple[float, ...] = ()
    """Of the reads that brought output, after the request was sent."""
    tokens: tuple[float, ...] = ()
    """Of each of those reads."""

    @property
    def ok(self) -> bool:
        """Does it count?"""
        return self.outcome == Outcome.OK and not self.spoilt


def trial_of(call: Call, reading: Reading) -> Trial:
    """The trial of a call that was made. A TTFT may be one that met a cache, for that is what some calls are for; one that
    the monitor spoilt may not.
    """
    m = reading.measurement
    spoilt, good = "contaminated" in m.notes, m.outcome is Outcome.OK
    return Trial(
        test=call.test,
        arm=call.arm,
        pair=call.pair,
        outcome=str(m.outcome),
        tokens_used=_used(call, m),
        spoilt=spoilt and not m.reliable.ttft and not m.reliable.tps,
        ttft_s=m.ttft_s if good and (m.reliable.ttft or not spoilt) else None,
        tps=m.decode_tps if good and m.reliable.tps else None,
        prompt_tokens=m.prompt_tokens,
        cached_tokens=m.cached_tokens,
        connect_s=m.phases.connect_s,
        queue_s=m.server_timings.get("queue_s"),
        stamps_s=reading.read_stamps_s if good else (),
        tokens=reading.read_tokens if good else (),
    )


def _used(call: Call, m: Measurement) -> int:
    """Tokens that it cost; what was planned where nobody says and output may have come."""
    if m.prompt_tokens is not None or m.output_tokens is not None:
        return (m.prompt_tokens or 0) + (m.output_tokens or 0)
    return call.tokens if m.outcome is Outcome.OK else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """How the target was before: an earlier diagnosis, or its own past. None is unknown.

    Speeds in tokens per second, times in seconds. `code_over_prose` and `cache_saves_s` are only there where that
    diagnosis found them; `speculated` and `cached` say whether it did.
    """

    prose_tps: float | None = None
    code_tps: float | None = None
    start_s: float | None = None
    prompt_token_s: float | None = None
    connect_s: float | None = None
    unevenness: float | None = None
    sway: float | None = None
    speculated: bool | None = None
    code_over_prose: float | None = None
    cached: bool | None = None
    cache_saves_s: float | None = None
    cache_prefix_tokens: float | None = None
    cache_reported: bool | None = None
    """Did the server itself report the hits?"""


NOTHING_KNOWN = Before()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an experiment gave: its figures, or why there are none."""

    test: str
    ran: bool
    reason: str | None = None
    """Why it could not run, or could not tell."""
    figures: Mapping[str, float | bool | None] = field(default_factory=dict)
    says: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """Something seen that speaks for or against causes; `holds` None: could not be seen."""

    name: str
    holds: bool | None
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A cause with its probability among those listed, and what speaks for it and against it, strongest first."""

    cause: Cause
    probability: float
    evidence: tuple[str, ...] = ()
    against: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The report. `complaint` is `slow`, `fast`, `none`, or `unknown` where too little could be measured; suspects are
    ranked, the likeliest first.
    """

    target: str
    complaint: str
    suspects: tuple[Suspect, ...]
    results: tuple[Result, ...]
    signs: tuple[Sign, ...]
    now: Before
    """The figures of this diagnosis, to compare a later one with."""
    calls: int
    tokens: int
    explanation: str
