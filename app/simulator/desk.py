"""One host at work: takes orders, decides what becomes of each, and tells the server what to send and when. No IO."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from app.catalog.load import Catalog
from app.simulator.cache import PromptCache, count_tokens
from app.simulator.faults import Mishap, draw
from app.simulator.hidden import Pace, pace_of
from app.simulator.host import Host
from app.simulator.order import NATURAL_TOKENS, Order
from app.simulator.plan import Plan, plan
from app.simulator.shapes import SHAPES, Answer, Shape, chunk, completion, event
from app.simulator.words import pieces, wants_code

CONTEXT_STEP = 64
"""Contexts are rounded up to this many tokens, so that a pace is computed once and not for each request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What becomes of one order."""

    plan: Plan
    answer: Answer
    shape: Shape
    texts: tuple[str, ...]
    mishap: Mishap | None = None

    def events(self) -> Iterator[bytes]:
        """The bytes of each write of the plan, in order."""
        start = 0
        for number, write in enumerate(self.plan.writes):
            opening = [event(each) for each in self.shape.head(self.answer)] if number == 0 else []
            body = []
            for tokens in write.chunks:
                body += [event(chunk(self.answer, delta)) for delta in self._deltas(start, start + tokens)]
                start += tokens
            yield b"".join((*opening, *body))

    def _deltas(self, start: int, end: int) -> Iterator[dict[str, object]]:
        """The deltas of some tokens: reasoning and content never share one."""
        turn = min(max(self.plan.reasoning_tokens, start), end)
        for first, last, reasoning in ((start, turn, True), (turn, end, False)):
            if first < last:
                yield self.shape.delta("".join(self.texts[first:last]), reasoning)

    def ending(self) -> bytes:
        """Finish, usage, and `[DONE]` where the dialect has it."""
        tail = b"".join(event(each) for each in self.shape.tail(self.answer))
        return tail + (b"data: [DONE]\n\n" if self.shape.done else b"")

    def trouble(self, status: int, code: str, message: str) -> bytes:
        """An error inside the stream."""
        complaint = self.shape.complaint(status, code, message)
        inside = complaint if "error" in complaint else {"error": complaint, "status_code": status}
        return event(inside) + (b"data: [DONE]\n\n" if self.shape.done else b"")

    def whole(self) -> bytes:
        """The whole answer as one JSON object."""
        turn = self.plan.reasoning_tokens
        return json.dumps(completion(self.answer, "".join(self.texts[turn:]), "".join(self.texts[:turn]), self.shape)).encode()


@dataclass(slots=True, kw_only=True)
class Desk:
    """A running host. Its n-th order has the same fate in every run with one seed, whatever else goes on."""

    host: Host
    catalog: Catalog
    seed: int = 0
    served: int = 0
    streams: int = 0
    """Answers under way; they share the engine's step with the next one."""
    _cache: PromptCache = field(init=False)
    _paces: dict[tuple[int, int], Pace] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cache = PromptCache(block_tokens=self.host.cache_tokens)

    @property
    def shape(self) -> Shape:
        """How this host dresses its answers."""
        return SHAPES[self.host.dialect]

    def take(self, order: Order, *, now_s: float) -> Job:
        """The fate of an order; `now_s` is Unix time, for `created`."""
        self.served += 1
        host, rng = self.host, Random(f"{self.seed}/{self.host.name}/{self.served}")
        mishap = draw(host.odds, rng)
        natural = rng.randint(*NATURAL_TOKENS)
        tokens = order.most if order.exact else min(order.most, natural)
        prompt_tokens, cached = count_tokens(order.prompt), self._cache.read(order.prompt)
        code = wants_code(order.prompt)
        made = plan(
            self.pace(prompt_tokens + tokens // 2),
            host.habits,
            tokens=tokens,
            prompt_tokens=prompt_tokens - cached,
            rng=rng,
            acceptance=host.hidden.acceptance(code=code),
            draft=host.hidden.draft,
        )
        text = pieces(code=code, rng=rng)
        return Job(
            plan=made,
            mishap=mishap,
            shape=self.shape,
            texts=tuple(next(text) for _ in range(tokens)),
            answer=Answer(
                id=f"chatcmpl-{rng.getrandbits(64):016x}",
                model=host.model,
                created=int(now_s),
                prompt_tokens=prompt_tokens,
                cached_tokens=cached,
                output_tokens=tokens,
                reasoning_tokens=made.reasoning_tokens,
                queue_s=made.queue_s,
                prompt_s=made.prefill_s,
                completion_s=made.end_s - made.queue_s - made.prefill_s,
                finish="length" if tokens == order.most else "stop",
                usage=order.usage,
            ),
        )

    def pace(self, context_tokens: int) -> Pace:
        """The pace of a stream that starts now."""
        key = (self.streams, -(-context_tokens // CONTEXT_STEP) * CONTEXT_STEP)
        if key not in self._paces:
            self._paces[key] = pace_of(self.host.hidden, catalog=self.catalog, others=key[0], context_tokens=key[1])
        return self._paces[key]
