"""How each kind of endpoint dresses the same answer: events, usage, server timings, errors (docs: providers)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The facts of one answer. Times in seconds; `usage` tells whether the client asked for it."""

    id: str
    model: str
    created: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    queue_s: float
    prompt_s: float
    completion_s: float
    finish: str
    usage: bool

    @property
    def times(self) -> Json:
        """Server timings as Groq and Cerebras name them."""
        return {
            "queue_time": round(self.queue_s, 9),
            "prompt_time": round(self.prompt_s, 9),
            "completion_time": round(self.completion_s, 9),
            "total_time": round(self.prompt_s + self.completion_s, 9),
        }

    @property
    def counts(self) -> Json:
        """The usage object that all share."""
        found: Json = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.prompt_tokens + self.output_tokens,
        }
        if self.cached_tokens:
            found["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        if self.reasoning_tokens:
            found["completion_tokens_details"] = {"reasoning_tokens": self.reasoning_tokens}
        return found


Delta = Callable[[str, bool], Json]
Events = Callable[[Answer], tuple[Json, ...]]
Complaint = Callable[[int, str, str], Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One dialect. `head`: events before the first token; `delta` (text, is it reasoning): of each event; `tail`: finish
    and usage; `complaint` (status, code, message): an error body. `comment`: sent while the answer waits. `done`: does
    `[DONE]` end it?
    """

    head: Events
    delta: Delta
    tail: Events
    complaint: Complaint
    done: bool = True
    comment: bytes = b""


def chunk(a: Answer, delta: Json | None, *, finish: str | None = None, **more: object) -> Json:
    """One `chat.completion.chunk`; without a delta it has no choices."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return {"id": a.id, "object": "chat.completion.chunk", "created": a.created, "model": a.model, "choices": choices, **more}


def event(payload: Json) -> bytes:
    """An event of the stream."""
    return b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n"


def completion(a: Answer, text: str, reasoning: str, shape: Shape) -> Json:
    """The whole answer as one object, for a call without `stream`."""
    message: Json = {**(shape.delta(reasoning, True) if reasoning else {}), "role": "assistant", "content": text}
    *_, last = shape.tail(a)
    return {
        "id": a.id,
        "object": "chat.completion",
        "created": a.created,
        "model": a.model,
        "choices": [{"index": 0, "message": message, "finish_reason": a.finish}],
        "usage": {**a.counts, **last.get("usage", {})},
        **{name: last[name] for name in ("time_info", "x_groq") if name in last},
    }


def _reasoning_field(text: str, reasoning: bool) -> Json:  # noqa: FBT001 - the type of Delta
    return {"reasoning": text} if reasoning else {"content": text}


def _nested(status: int, code: str, message: str) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error" if status < 500 else "server_error", "code": code}}


def _role(a: Answer) -> tuple[Json, ...]:
    return (chunk(a, {"role": "assistant", "content": ""}),)


def _vllm_tail(a: Answer) -> tuple[Json, ...]:
    finish = chunk(a, {"content": ""}, finish=a.finish)
    return (finish, chunk(a, None, usage=a.counts)) if a.usage else (finish,)


def _groq_head(a: Answer) -> tuple[Json, ...]:
    return (chunk(a, {"role": "assistant", "content": ""}, x_groq={"id": f"req_{a.id}"}),)


def _groq_delta(text: str, reasoning: bool) -> Json:  # noqa: FBT001 - the type of Delta
    return {"reasoning": text, "channel": "analysis"} if reasoning else {"content": text}


def _groq_tail(a: Answer) -> tuple[Json, ...]:
    """Usage three times: in `x_groq`, in the finish chunk, and in a chunk of its own."""
    usage = {**a.counts, **a.times}
    vendor = {"id": f"req_{a.id}", "usage": usage}
    if not a.usage:
        return (chunk(a, {}, finish=a.finish, x_groq=vendor),)
    return chunk(a, {}, finish=a.finish, x_groq=vendor, usage=usage), chunk(a, None, usage=usage)


def _cerebras_head(a: Answer) -> tuple[Json, ...]:
    return (chunk(a, {"role": "assistant"}),)


def _cerebras_tail(a: Answer) -> tuple[Json, ...]:
    """Finish, usage and time_info in one chunk, and nothing after it."""
    return (chunk(a, {}, finish=a.finish, usage=a.counts, time_info={**a.times, "created": a.created}),)


def _flat(status: int, code: str, message: str) -> Json:
    kind = "too_many_requests_error" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    return {"message": message, "type": kind, "param": None, "code": code}


def _openrouter_delta(text: str, reasoning: bool) -> Json:  # noqa: FBT001 - the type of Delta
    if not reasoning:
        return {"role": "assistant", "content": text}
    return {
        "role": "assistant",
        "content": "",
        "reasoning": text,
        "reasoning_details": [{"type": "reasoning.text", "text": text}],
    }


def _openrouter_tail(a: Answer) -> tuple[Json, ...]:
    """The finish, and a chunk that repeats it with usage and cost."""
    finish = chunk(a, {"role": "assistant", "content": ""}, finish=a.finish)
    return finish, chunk(a, {"role": "assistant", "content": ""}, finish=a.finish, usage={**a.counts, "cost": 0.0})


def _numbered(status: int, code: str, message: str) -> Json:
    return {"error": {"code": status, "message": message, "metadata": {"raw": code}}}


SHAPES: Mapping[str, Shape] = {
    "vllm": Shape(head=_role, delta=_reasoning_field, tail=_vllm_tail, complaint=_nested),
    "groq": Shape(head=_groq_head, delta=_groq_delta, tail=_groq_tail, complaint=_nested),
    "cerebras": Shape(head=_cerebras_head, delta=_reasoning_field, tail=_cerebras_tail, complaint=_flat, done=False),
    "openrouter": Shape(
        head=lambda _: (),
        delta=_openrouter_delta,
        tail=_openrouter_tail,
        complaint=_numbered,
        comment=b": OPENROUTER PROCESSING\n\n",
    ),
}
"""Name -> shape."""
