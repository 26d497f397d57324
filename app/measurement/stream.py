"""A whole body, read once: events, outputs, usage, errors and ends, by index and by byte offset. Knows no time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from app.measurement.chunks import Chunk, Part, read_chunk
from app.measurement.framing import Event, frame
from app.measurement.text import Visible

EVENT_LIMIT = 1 << 20
DONE = b"[DONE]"
_MAYBE_DONE = (b"[", b" ", b"\t", b"\n", b"\r", b"\v", b"\f")
_decode = msgspec.json.Decoder().decode


class Output(msgspec.Struct, gc=False):
    """An event that carries output: its index, the offset just past it, its characters, and usage so far if sent with it."""

    index: int
    end: int
    chars: int
    usage_so_far: int | None


@dataclass(slots=True)
class Stream:
    """What a body says. Indices count dispatched events (or NDJSON lines) from 0; None where there is none."""

    kind: Literal["sse", "ndjson", "plain"] = "sse"
    events: int = 0
    comments: int = 0
    outputs: list[Output] = field(default_factory=list)
    first: dict[str, int] = field(default_factory=dict)
    """First index of `output`, `content`, `reasoning`, `tool`, `refusal`, `visible`."""
    ends: dict[str, int] = field(default_factory=dict)
    """Offset just past the first `visible`, `finish`, `usage`, `done` event."""
    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    usages: list[Mapping[str, Any]] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    done_seen: bool = False
    errors: list[object] = field(default_factory=list)
    empty_deltas: int = 0
    """Chunks of choice 0 with neither output nor finish: the role's, and tokens that nobody sees."""
    empty_before_output: int = 0
    error_before_output: bool = False
    undecodable: bool = False
    oversize: bool = False
    cut_off: bool = False
    """SSE that ended inside an event."""
    model: str | None = None
    served_by: str | None = None
    think: str | None = None


def read_stream(body: bytes, *, content_type: str | None = None) -> Stream:
    """Read a body as an event stream, as NDJSON, or, when it is neither, as `plain` (with nothing in it)."""
    kind = (content_type or "").lower()
    if "ndjson" in kind or "jsonl" in kind:
        return _Reader(Stream(kind="ndjson")).lines(body)
    framed = frame(body)
    if framed.events or framed.errors or framed.tail or framed.comments:
        stream = _Reader(Stream(kind="sse", comments=framed.comments)).events(framed.events)
        stream.done_seen = stream.done_seen or framed.tail.strip() == DONE
        stream.cut_off = bool(framed.tail) and not stream.done_seen
        if framed.errors:
            stream.error_before_output |= not stream.outputs
            stream.errors += [_error_field(each) for each in framed.errors]
        return stream
    if body.lstrip()[:1] == b"{" and b'"done"' in body[:4096]:
        return _Reader(Stream(kind="ndjson")).lines(body)
    return Stream(kind="plain")


def _error_field(value: bytes) -> object:
    try:
        found = _decode(value)
    except (msgspec.DecodeError, RecursionError):
        return {"message": value.decode("utf-8", "replace")}
    return found.get("error") or found if isinstance(found, dict) else {"message": str(found)}


def decode_event(data: bytes) -> Sequence[Mapping[str, Any]]:
    """The JSON objects of an event's data: one; or several glued together; or the error among cut lines.

    Raises:
        ValueError: none of that.
    """
    try:
        found = _decode(data)
    except (msgspec.DecodeError, RecursionError):
        return _salvage(data.decode("utf-8", "replace"))
    return (found,) if isinstance(found, dict) else ()


def _salvage(text: str) -> Sequence[Mapping[str, Any]]:
    decoder = json.JSONDecoder()
    found: list[Mapping[str, Any]] = []
    position = 0
    try:
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            found += [value] if isinstance(value, dict) else []
            while position < len(text) and text[position] in " \t\r\n":
                position += 1
    except (ValueError, RecursionError):
        found = [each for line in text.split("\n") for each in _lone_error(line)]
        if not found:
            raise ValueError("an event that is not JSON") from None
    return found


def _lone_error(line: str) -> Iterator[Mapping[str, Any]]:
    try:
        value = json.loads(line.removeprefix("data:"))
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict) and value.get("error"):
        yield value


@dataclass(slots=True)
class _Reader:
    stream: Stream
    visible: Visible = field(default_factory=Visible)

    def events(self, events: tuple[Event, ...]) -> Stream:
        s = self.stream
        s.events = len(events)
        ends: list[int] = []
        for index, event in enumerate(events):
            ends.append(event.end)
            if s.done_seen:
                continue
            if len(event.data) > EVENT_LIMIT:
                s.oversize = True
            elif event.data.startswith(_MAYBE_DONE) and event.data.strip() == DONE:
                s.done_seen = True
                s.ends["done"] = event.end
            else:
                self._event(event, index)
        return self._finish(ends)

    def lines(self, body: bytes) -> Stream:
        s = self.stream
        position = 0
        ends: list[int] = []
        for raw in body.splitlines(keepends=True):
            position += len(raw)
            if not (line := raw.strip()):
                continue
            if not raw.endswith((b"\n", b"\r")) and not _whole(line):
                s.cut_off = True
                break
            ends.append(position)
            if len(line) > EVENT_LIMIT:
                s.oversize = True
            elif not s.done_seen:
                self._event(Event(data=line, name="message", end=position), s.events)
            s.events += 1
        return self._finish(ends)

    def _finish(self, ends: list[int]) -> Stream:
        s = self.stream
        if "visible" not in s.first and (undecided := self.visible.end()) is not None:
            s.first["visible"] = undecided
        if "visible" in s.first:
            s.ends["visible"] = ends[s.first["visible"]]
        s.think = self.visible.think
        return s

    def _event(self, event: Event, index: int) -> None:
        s = self.stream
        data = event.data.lstrip()
        if not data or data.startswith(b":"):
            return  # nothing, or a comment that a gateway wrapped once more
        try:
            for found in decode_event(data):
                chunk = read_chunk(found)
                if event.name == "error" and not chunk.error:
                    chunk.error = dict(found)
                self._chunk(chunk, index, event.end)
        except ValueError:
            if event.name == "error":
                self._error({"message": data.decode("utf-8", "replace")})
            else:
                s.undecodable = True

    def _error(self, error: object) -> None:
        self.stream.error_before_output |= not self.stream.outputs and not self.stream.errors
        self.stream.errors.append(error)

    def _chunk(self, chunk: Chunk, index: int, end: int) -> None:
        s = self.stream
        s.model = chunk.model or s.model
        s.served_by = chunk.served_by or s.served_by
        if chunk.timings:
            s.timings.update(chunk.timings)
        output = False
        for part in chunk.parts:
            self._part(part, index, end)
            output = output or part.output
        if chunk.usages:
            s.usages += chunk.usages
            s.ends.setdefault("usage", end)
        if output:
            self._output(index, end, sum([part.chars for part in chunk.parts]), _completion(chunk))
        if chunk.error:
            self._error(chunk.error)
        if chunk.done:
            s.done_seen = True
            s.ends["done"] = end

    def _part(self, part: Part, index: int, end: int) -> None:
        s = self.stream
        if part.content:
            s.first.setdefault("content", index)
        if part.reasoning:
            s.first.setdefault("reasoning", index)
        if part.tool:
            s.first.setdefault("tool", index)
        if part.refusal:
            s.first.setdefault("refusal", index)
        if part.finish is not None:
            s.ends.setdefault("finish", end)
        if part.choice != 0:
            return
        self._text(part.content, part.reasoning, index)
        if part.finish is not None:
            s.finish_reason = part.finish
        elif not part.output:
            s.empty_deltas += 1

    def _output(self, index: int, end: int, chars: int, usage_so_far: int | None) -> None:
        s = self.stream
        if not s.outputs:
            s.empty_before_output = s.empty_deltas
        s.first.setdefault("output", index)
        if s.outputs and s.outputs[-1].index == index:
            s.outputs[-1].chars += chars
        else:
            s.outputs.append(Output(index, end, chars, usage_so_far))

    def _text(self, content: str, reasoning: str, index: int) -> None:
        s = self.stream
        if reasoning:
            s.reasoning.append(reasoning)
        if content:
            s.content.append(content)
            if "visible" not in s.first and (began := self.visible.feed(content, index)) is not None:
                s.first["visible"] = began


def _whole(line: bytes) -> bool:
    try:
        _decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _completion(chunk: Chunk) -> int | None:
    value = chunk.usages[-1].get("completion_tokens") if chunk.usages else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
