"""What a client at the far end of a line would have stamped of a plan: the wire without sockets."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from app.simulator.plan import Plan

RESEND_S = 0.2
"""The least time after which TCP sends a lost segment again (RFC 6298 as Linux has it)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A way through the network: round trip, the share that it varies by (of each write), and the share of writes lost."""

    rtt_s: float = 0.02
    jitter: float = 0.0
    loss: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Stamps in seconds after the request was sent; what arrives in one instant is one read."""

    connect_s: float
    stamps_s: tuple[float, ...]
    tokens: tuple[int, ...]


def watch(plan: Plan, line: Line, *, rng: Random) -> Seen:
    """The plan as it arrives: half a round trip each way, in order, and behind a lost write until that was sent again."""
    connect_s = _trip(line, rng) + _resends(line, rng)
    out_s = _trip(line, rng) / 2 + _resends(line, rng)
    stamps, tokens = list[float](), list[int]()
    arrived = 0.0
    for write in plan.writes:
        due = out_s + write.at_s + _trip(line, rng) / 2 + _resends(line, rng)
        if stamps and due <= arrived:
            tokens[-1] += sum(write.chunks)
            continue
        arrived = due
        stamps.append(arrived)
        tokens.append(sum(write.chunks))
    return Seen(connect_s=connect_s, stamps_s=tuple(stamps), tokens=tuple(tokens))


def _trip(line: Line, rng: Random) -> float:
    return line.rtt_s * (1 + abs(rng.gauss(0.0, line.jitter))) if line.jitter else line.rtt_s


def _resends(line: Line, rng: Random) -> float:
    return RESEND_S + line.rtt_s if line.loss and rng.random() < line.loss else 0.0
