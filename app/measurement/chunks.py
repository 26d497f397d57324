"""What one JSON chunk of a stream says, whatever dialect wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

Json = Mapping[str, Any]

_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
_REASONING_KEYS = frozenset({*_REASONING_FIELDS, "reasoning_details"})


class Part(msgspec.Struct, gc=False):
    """What one choice of one chunk carries."""

    choice: int
    content: str = ""
    reasoning: str = ""
    tool: bool = False
    tool_chars: int = 0
    refusal: str = ""
    finish: str | None = None

    @property
    def output(self) -> bool:
        """Is there an output token of any kind?"""
        return bool(self.content or self.reasoning or self.tool or self.refusal)

    @property
    def chars(self) -> int:
        """Code points of all output, to share tokens by."""
        return len(self.content) + len(self.reasoning) + self.tool_chars + len(self.refusal)


class Chunk(msgspec.Struct):
    """One chunk: its choices, and what stands beside them."""

    parts: list[Part] = []
    usages: list[Json] = []
    timings: dict[str, float] = {}
    error: object = None
    model: str | None = None
    served_by: str | None = None
    done: bool = False


def read_chunk(data: Json) -> Chunk:
    """Read a chat-completion chunk, a text-completion chunk or a line of Ollama's own API; never fails."""
    chunk = Chunk(error=_error(data))
    if isinstance(data.get("model"), str):
        chunk.model = data["model"] or None
    for name in ("provider", "system_fingerprint"):
        if isinstance(data.get(name), str) and data[name]:
            chunk.served_by = data[name]
            break
    if isinstance(choices := data.get("choices"), list):
        chunk.parts = [_choice(choice, index) for index, choice in enumerate(choices) if isinstance(choice, dict)]
    elif isinstance(message := data.get("message"), dict) and "done" in data:
        chunk.parts = [_delta(message, 0)]
    if data.get("done") is True:
        _ollama_end(data, chunk)
    _usages(data, chunk)
    _timings(data, chunk.timings)
    return chunk


def _error(data: Json) -> object:
    error = data.get("error")
    if error:
        return error
    if data.get("object") == "error" or data.get("type") == "error":
        return data
    return None


def _choice(choice: Json, index: int) -> Part:
    number = choice.get("index")
    delta = choice.get("delta")
    part = _delta(delta if isinstance(delta, dict) else {}, number if isinstance(number, int) else index)
    if not isinstance(delta, dict) and isinstance(choice.get("text"), str):
        part.content = choice["text"]
    reason = choice.get("finish_reason")
    part.finish = reason if isinstance(reason, str) and reason else None
    return part


def _delta(delta: Json, choice: int) -> Part:
    part = Part(choice)
    listed = ""
    content = delta.get("content")
    if isinstance(content, str):
        part.content = content
    elif isinstance(content, list):
        part.content, listed = _content_parts(content)
    if listed or not _REASONING_KEYS.isdisjoint(delta):
        part.reasoning = listed or next(_reasoning(delta), "")
    if calls := delta.get("tool_calls") or delta.get("function_call"):
        part.tool = True
        part.tool_chars = sum(map(len, _arguments(calls)))
    if isinstance(refusal := delta.get("refusal"), str):
        part.refusal = refusal
    return part


def _content_parts(parts: Sequence[object]) -> tuple[str, str]:
    """Text and reasoning of a content list (Mistral's thinking parts, Databricks' reasoning summaries)."""
    text: list[str] = []
    thought: list[str] = []
    for part in parts:
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict):
            (thought if part.get("type") in {"thinking", "reasoning"} else text).extend(_texts(part))
    return "".join(text), "".join(thought)


def _texts(value: object) -> Iterator[str]:
    """Every piece of text below a part: strings, `text`, `thinking`, `summary`, nested lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for name in ("text", "thinking", "reasoning", "summary"):
            if name in value:
                yield from _texts(value[name])
                return


def _reasoning(delta: Json) -> Iterator[str]:
    """Reasoning by field, the fields that carry any, in the order in which one is counted."""
    for name in _REASONING_FIELDS:
        value = delta.get(name)
        if isinstance(value, str) and value:
            yield value
        elif isinstance(value, (list, dict)) and (found := "".join(_texts(value))):
            yield found
    details = delta.get("reasoning_details")
    if isinstance(details, list) and (found := "".join(_texts(details))):
        yield found


def _arguments(calls: object) -> Iterator[str]:
    for call in calls if isinstance(calls, list) else [calls]:
        function = call.get("function", call) if isinstance(call, dict) else {}
        for name in ("name", "arguments"):
            if isinstance(function, dict) and isinstance(function.get(name), str):
                yield function[name]


def _usages(data: Json, chunk: Chunk) -> None:
    groq = data.get("x_groq")
    for holder in (data, groq) if isinstance(groq, dict) else (data,):
        usage = holder.get("usage")
        if isinstance(usage, dict) and usage:
            chunk.usages.append(usage)
            _timings(usage, chunk.timings)
    if isinstance(groq, dict):
        chunk.error = chunk.error or groq.get("error") or None


def _ollama_end(data: Json, chunk: Chunk) -> None:
    chunk.done = True
    reason = data.get("done_reason")
    part = chunk.parts[0] if chunk.parts else Part(0)
    part.finish = reason if isinstance(reason, str) and reason else "stop"
    chunk.parts = [part]
    if "eval_count" in data or "prompt_eval_count" in data:
        chunk.usages.append({"prompt_tokens": data.get("prompt_eval_count"), "completion_tokens": data.get("eval_count")})


_SECONDS = {
    "queue_time": ("queue_s", 1.0),
    "prompt_time": ("prompt_s", 1.0),
    "completion_time": ("completion_s", 1.0),
    "total_time": ("total_s", 1.0),
    "prompt_ms": ("prompt_s", 1e-3),
    "predicted_ms": ("completion_s", 1e-3),
    "ttft_ms": ("ttft_s", 1e-3),
    "time_to_first_token_ms": ("ttft_s", 1e-3),
    "time_to_first_token": ("ttft_s", 1.0),
    "total_prompt_time_sec": ("prompt_s", 1.0),
    "total_completion_time_sec": ("completion_s", 1.0),
    "total_time_sec": ("total_s", 1.0),
    "total_duration": ("total_s", 1e-9),
    "load_duration": ("load_s", 1e-9),
    "prompt_eval_duration": ("prompt_s", 1e-9),
    "eval_duration": ("completion_s", 1e-9),
    "server-time-to-first-token": ("ttft_s", 1.0),
    "server-processing-time": ("total_s", 1.0),
    "prefill-duration": ("prompt_s", 1.0),
    "generation-duration": ("completion_s", 1.0),
    "prefill-queue-duration": ("queue_s", 1.0),
    "queue_time_ms": ("queue_s", 1e-3),
    "generation_time_ms": ("completion_s", 1e-3),
}
"""Server-side times under all their names: ours, and the factor to seconds."""


_HOLDERS = ("time_info", "timings", "sla_metrics", "metrics", "perf_metrics")
_TIMED = frozenset({*_SECONDS, *_HOLDERS})


def _timings(data: Json, into: dict[str, float]) -> None:
    if _TIMED.isdisjoint(data):
        return
    for holder in (data, *(data.get(name) for name in _HOLDERS)):
        if isinstance(holder, dict):
            for name in _SECONDS.keys() & holder.keys():
                ours, factor = _SECONDS[name]
                value = holder[name]
                if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MOST:
                    into[ours] = round(value * factor, 9)


MOST = 1e15
"""Larger is no time in any unit: `nan`, infinities and overflows stay out."""
