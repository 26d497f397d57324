"""When each token of an answer leaves: pure arithmetic of pace, queue, jitter, speculation and chunking.

A plan is made before the first byte is sent. The server then follows its absolute times, so that lateness never adds up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from app.simulator.hidden import Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How a host departs from a metronome. All zero: exactly the theory.

    `queue_median_s`, `queue_sigma`: a log-normal wait before prefill. `utilization`: an M/M/1 wait besides, with `service_s` a
    request. `jitter`: sigma of the log-normal factor of each step (its mean is 1). `steps_per_chunk`: engine steps in an event,
    on average. `flush_s`: a proxy that writes only so often; 0 writes at once. `reasoning`: share of the tokens.
    `sway`: sigma of the log-normal factor of a whole answer, for what else goes on there. `intrusion`: probability that a
    step carries a piece of somebody's prefill besides, which takes `intrusion_s` on average (exponential); our own prefill
    is held up by as many.
    """

    queue_median_s: float = 0.0
    queue_sigma: float = 0.5
    utilization: float = 0.0
    service_s: float = 0.0
    jitter: float = 0.0
    steps_per_chunk: float = 1.0
    flush_s: float = 0.0
    reasoning: float = 0.0
    sway: float = 0.0
    intrusion: float = 0.0
    intrusion_s: float = 0.0


METRONOME = Habits()
PREFILL_PIECE = 512
"""Tokens of a prompt that an engine reads in one step between the decoding of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One engine step that gave `tokens`, at `at_s` after the request was read."""

    at_s: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """What is written at once at `at_s`: one event for each of `chunks`, of so many tokens."""

    at_s: float
    chunks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole answer: its waits, its writes, and how many of its tokens (the first ones) are reasoning."""

    queue_s: float
    prefill_s: float
    writes: tuple[Write, ...]
    reasoning_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Output tokens in all."""
        return sum(sum(write.chunks) for write in self.writes)

    @property
    def end_s(self) -> float:
        """When the last write leaves."""
        return self.writes[-1].at_s if self.writes else self.queue_s + self.prefill_s


def plan(
    pace: Pace, habits: Habits, *, tokens: int, prompt_tokens: int, rng: Random, acceptance: float = 0.0, draft: int = 0
) -> Plan:
    """The plan of one answer.

    Args:
        pace: seconds of a step and of the prefill.
        habits: what departs from the metronome.
        tokens: output tokens, reasoning included.
        prompt_tokens: of the prompt that are not in the cache.
        rng: the randomness of this request.
        acceptance: probability that a drafted token is accepted.
        draft: tokens drafted in each step.
    """
    queue_s = queue_wait_s(habits, rng)
    sway = math.exp(rng.gauss(0.0, habits.sway)) if habits.sway else 1.0
    prefill_s = pace.prefill_s(prompt_tokens) * sway
    if habits.intrusion:
        prefill_s += sum(_intrusion_s(habits, rng) for _ in range(1 + prompt_tokens // PREFILL_PIECE))
    start_s = queue_s + prefill_s
    steps = beats(
        pace.step_s * sway,
        habits,
        tokens=tokens,
        start_s=start_s,
        acceptance=acceptance,
        draft=draft,
        rng=rng,
    )
    chunks = chunked(steps, per_chunk=habits.steps_per_chunk, rng=rng)
    return Plan(
        queue_s=queue_s,
        prefill_s=prefill_s,
        writes=tuple(flushed(chunks, every_s=habits.flush_s)),
        reasoning_tokens=int(tokens * habits.reasoning),
    )


def queue_wait_s(habits: Habits, rng: Random) -> float:
    """Seconds in the queue: log-normal, and M/M/1 with P(W > t) = rho exp(-(1 - rho) t / service)."""
    wait = habits.queue_median_s * math.exp(rng.gauss(0.0, habits.queue_sigma)) if habits.queue_median_s else 0.0
    if habits.utilization and rng.random() < habits.utilization:
        wait += rng.expovariate((1 - habits.utilization) / habits.service_s)
    return wait


def _intrusion_s(habits: Habits, rng: Random) -> float:
    """Seconds that somebody's prefill adds to one step."""
    return rng.expovariate(1 / habits.intrusion_s) if rng.random() < habits.intrusion else 0.0


def beats(
    step_s: float, habits: Habits, *, tokens: int, start_s: float, acceptance: float, draft: int, rng: Random
) -> Iterator[Beat]:
    """Engine steps from the end of the prefill on; the first token costs a step of its own.

    Of a draft the tokens before the first refused one are kept and one more comes from the target, so a step gives
    1 to draft + 1 tokens, (1 - a^(g+1)) / (1 - a) on average (Leviathan et al., arXiv 2211.17192).
    """
    at_s, left, jitter = start_s, tokens, habits.jitter
    while left > 0:
        at_s += step_s * math.exp(rng.gauss(-jitter * jitter / 2, jitter)) if jitter else step_s
        if habits.intrusion:
            at_s += _intrusion_s(habits, rng)
        kept = 1
        while kept <= draft and rng.random() < acceptance:
            kept += 1
        yield Beat(at_s=at_s, tokens=min(kept, left))
        left -= kept


def chunked(steps: Iterator[Beat], *, per_chunk: float, rng: Random) -> Iterator[Beat]:
    """Steps fused into events: an event waits for its last step. 1.2 fuses every fifth step or so with the next."""
    held, wanted = 0, _steps(per_chunk, rng)
    last: Beat | None = None
    for step in steps:
        held, wanted, last = held + step.tokens, wanted - 1, step
        if wanted <= 0:
            yield Beat(at_s=step.at_s, tokens=held)
            held, wanted = 0, _steps(per_chunk, rng)
    if held and last is not None:
        yield Beat(at_s=last.at_s, tokens=held)


def _steps(per_chunk: float, rng: Random) -> int:
    whole = int(per_chunk)
    part = per_chunk - whole
    return whole + (1 if part and rng.random() < part else 0)


def flushed(events: Iterator[Beat], *, every_s: float) -> Iterator[Write]:
    """Events gathered into writes by a proxy that flushes at multiples of `every_s`."""
    at_s, held = 0.0, list[int]()
    for event in events:
        due_s = math.ceil(event.at_s / every_s) * every_s if every_s else event.at_s
        if held and due_s != at_s:
            yield Write(at_s=at_s, chunks=tuple(held))
            held.clear()
        at_s = due_s
        held.append(event.tokens)
    if held:
        yield Write(at_s=at_s, chunks=tuple(held))
