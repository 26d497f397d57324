"""A Measurement: the figures of one run, each with whether it can be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.measurement.recording import StampSource
from app.targets.model import Connection

DEFINITION_VERSION = 1
"""Version of the definitions behind the figures; stored with every run, raised when a figure changes its meaning."""


class Outcome(StrEnum):
    """Whose problem a run is."""

    OK = "ok"
    PROVIDER_ERROR = "provider_error"
    RATE_LIMITED = "rate_limited"
    AUTH = "auth"
    NOT_FOUND = "not_found"
    BAD_REQUEST = "bad_request"
    CONTENT_FILTER = "content_filter"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    EMPTY = "empty"
    SKIPPED_BUDGET = "skipped_budget"
    LOCAL_ERROR = "local_error"


AGAINST_PROVIDER = frozenset(
    {
        Outcome.PROVIDER_ERROR,
        Outcome.TIMEOUT,
        Outcome.STALLED,
        Outcome.TRUNCATED,
        Outcome.MALFORMED,
        Outcome.EMPTY,
    }
)
"""The only outcomes that count against the provider's availability."""


class ErrorClass(StrEnum):
    """Refines an outcome; `none` on success."""

    NONE = "none"
    BUDGET = "budget"
    LOCAL = "local"
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    RESET = "reset"
    TIMEOUT = "timeout"
    STALL = "stall"
    OVERSIZE = "oversize"
    NOT_SSE = "not_sse"
    CONTEXT_LENGTH = "context_length"
    AUTH = "auth"
    NOT_FOUND = "not_found"
    QUOTA = "quota"
    OVERLOADED = "overloaded"
    RATE_LIMITED = "rate_limited"
    PERMISSION = "permission"
    BAD_GATEWAY = "bad_gateway"
    SERVER_ERROR = "server_error"
    BAD_REQUEST = "bad_request"
    CONTENT_FILTER = "content_filter"
    EMPTY = "empty"
    TRUNCATED = "truncated"


class TokenSource(StrEnum):
    """Where the number of output tokens comes from."""

    USAGE = "usage"
    TOKENIZER = "tokenizer"
    CHUNKS = "chunks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Seconds of each phase; they and the stream sum to the total. None: did not happen."""

    dns_s: float | None = None
    connect_s: float | None = None
    tls_s: float | None = None
    send_s: float | None = None
    wait_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Seconds between consecutive output reads. A stall is a gap over max(1 s, 20 x median). Percentiles of one run are
    descriptive: they need 2 reads, not the sample sizes of a window.
    """

    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    max_s: float | None = None
    stalls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliable:
    """May this figure enter statistics and verdicts?"""

    ttft: bool = False
    tps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The figures of one run. Seconds are floats; a figure that does not exist is None, never 0."""

    outcome: Outcome
    error_class: ErrorClass
    error_text: str | None = None
    """For people, at most 300 characters, free of secrets and prompts."""
    http_status: int | None = None
    finish_reason: str | None = None
    connection: Connection = Connection.COLD
    stamp_source: StampSource = StampSource.NONE
    phases: Phases = Phases()
    presend_s: float | None = None
    ttft_s: float | None = None
    ttft_visible_s: float | None = None
    decode_tps: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    e2e_tps: float | None = None
    stream_end_s: float | None = None
    total_s: float | None = None
    """Start of the call to its end, whatever it was."""
    gaps: Gaps = Gaps()
    cold_ttft_s: float | None = None
    """Of a paired recipe: TTFT of the call before, which nobody's cache could know. `ttft_s` is that of the second."""
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    token_source: TokenSource | None = None
    output_reads: int = 0
    output_events: int = 0
    tokens_per_read: float | None = None
    events_per_read_max: int | None = None
    server_timings: Mapping[str, float] = field(default_factory=dict)
    retry_after_s: float | None = None
    rate_limits: Mapping[str, float] = field(default_factory=dict)
    served_model: str | None = None
    served_by: str | None = None
    """`system_fingerprint` or a router's upstream provider, where sent."""
    reliable: Reliable = Reliable()
    unreliable_because: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Figure (`ttft`, `tps`) -> the notes that spoil it, sorted."""
    notes: tuple[str, ...] = ()
    """Machine-readable reason codes, sorted."""
    loop_lag_s: float | None = None
    definition_version: int = DEFINITION_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One terminal result of one tick. (`due_at`, `target`, `location`) is its identity: at most one run has it.

    `due_at` is the instant of the grid; a probe on demand uses the instant it was asked for. `read_stamps_s` and
    `read_tokens` are the token timeline: one entry per output read, seconds since `request_sent`.
    """

    id: str
    target: str
    location: str
    due_at: datetime
    started_at: datetime
    finished_at: datetime
    provider: str
    model: str
    recipe: str
    measurement: Measurement
    cost_usd: float | None = None
    read_stamps_s: tuple[float, ...] = ()
    read_tokens: tuple[float, ...] = ()
    recording: bytes | None = None
    """The compressed recording, where it is kept as evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a recording says: the figures, and the token timeline of the output reads (seconds since `request_sent`)."""

    measurement: Measurement
    read_stamps_s: tuple[float, ...] = ()
    read_tokens: tuple[float, ...] = ()
