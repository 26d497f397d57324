"""What a probe leaves behind: stamps, bytes and facts, before anything is read out of them.

A Recording is the only thing that crosses from `probe` to `measurement`. All stamps are nanoseconds of one monotonic
clock; a mark that never came is None.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.targets.model import Connection


class StampSource(StrEnum):
    """Who stamped the reads: the kernel on arrival, the loop when it was told, some by either, or nobody (a replay).

    What must hold for every stamp, such as being right while the loop is late, holds for `kernel` only.
    """

    KERNEL = "kernel"
    MIXED = "mixed"
    LOOP = "loop"
    NONE = "none"


class FailureKind(StrEnum):
    """What ended a run before its stream did, as the wire saw it; `measurement` makes an outcome of it."""

    BUDGET = "budget"
    LOCAL = "local"
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    RESET = "reset"
    PROTOCOL = "protocol"
    DEADLINE_CONNECT = "deadline_connect"
    DEADLINE_FIRST_TOKEN = "deadline_first_token"
    DEADLINE_TOTAL = "deadline_total"
    STALL = "stall"
    OVERSIZE = "oversize"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why the wire gave up; `text` is for people, already free of secrets."""

    kind: FailureKind
    text: str


@dataclass(slots=True, kw_only=True)
class Marks:
    """Instants of a run, monotonic nanoseconds. What happens inside the body is not here: the tape has it."""

    started: int
    dns_start: int | None = None
    dns_end: int | None = None
    connected: int | None = None
    tls_done: int | None = None
    request_sent: int | None = None
    headers: int | None = None
    first_byte: int | None = None
    closed: int | None = None


@dataclass(slots=True, kw_only=True)
class Tape:
    """A response body and when its bytes arrived.

    `body` is the decoded body (transfer coding undone). After read i, which arrived at `stamps[i]`, the first `ends[i]`
    bytes of it were there; both arrays have one entry a read and never fall. A replayed body of unknown reads has one
    read, stamped 0.
    """

    body: bytes = b""
    stamps: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))

    @classmethod
    def replayed(cls, body: bytes, *, read_sizes: Iterable[int] | None = None) -> Tape:
        """A tape for bytes without times: all stamps 0, reads split as `read_sizes` says (else one read)."""
        ends = array("q")
        total = 0
        for size in read_sizes or ():
            total = min(total + size, len(body))
            ends.append(total)
        if not ends or ends[-1] < len(body):
            ends.append(len(body))
        return cls(body=body, stamps=array("q", [0] * len(ends)), ends=ends)


@dataclass(slots=True, kw_only=True)
class HostHealth:
    """How well the measuring host kept time during the run: event-loop lag in seconds, streams in flight."""

    loop_lag_p99_s: float | None = None
    loop_lag_max_s: float | None = None
    in_flight: int = 1


@dataclass(slots=True, kw_only=True)
class Recording:
    """Everything that one call left: enough to measure it, to measure it again, and to show it."""

    base_url: str
    model: str
    recipe: str
    dialect: str
    marks: Marks
    started_at: datetime
    """Wall clock at `marks.started`, aware UTC."""
    tape: Tape = field(default_factory=Tape)
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Response headers, names in lower case, in order of arrival; secrets are never among them."""
    ended: bool = False
    """The body came to its orderly end (last chunk, content length, or close where neither was declared)."""
    failure: Failure | None = None
    connection: Connection = Connection.COLD
    stamp_source: StampSource = StampSource.NONE
    host: HostHealth = field(default_factory=HostHealth)
    expected_output_tokens: int | None = None
    request_notes: tuple[str, ...] = ()
    """Reason codes of the request side, e.g. `without_stream_options`."""

    def header(self, name: str) -> str | None:
        """The first value of a response header, by lower-case name."""
        return next((value for key, value in self.headers if key == name), None)
