"""What goes wrong at a host, drawn from seeded randomness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    """One way to fail a request."""

    RATE_LIMITED = "rate_limited"
    """429 with `retry-after`."""
    SERVER_ERROR = "server_error"
    """500."""
    OVERLOADED = "overloaded"
    """503."""
    BAD_GATEWAY = "bad_gateway"
    """502 with a page of HTML."""
    ERROR_INSIDE = "error_inside"
    """200, some text, then an error object."""
    TRUNCATED = "truncated"
    """200, some text, then a clean end without a finish."""
    RESET = "reset"
    """200, some text, then a reset of the connection."""
    STALLED = "stalled"
    """200, some text, then silence for as long as the client waits."""
    EMPTY = "empty"
    """200, and a proper end without any text."""


BEFORE_STREAM = frozenset({Fault.RATE_LIMITED, Fault.SERVER_ERROR, Fault.OVERLOADED, Fault.BAD_GATEWAY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """A fault of one request; what happens inside a stream happens after `after` of its writes (a share of 0 to 1)."""

    fault: Fault
    after: float


def draw(odds: Mapping[Fault, float], rng: Random) -> Mishap | None:
    """The fault of one request, or None; `odds` are probabilities of excluding faults and sum to 1 at most."""
    at, after = rng.random(), rng.random()
    for fault in sorted(odds):
        at -= odds[fault]
        if at < 0:
            return Mishap(fault=fault, after=after)
    return None
