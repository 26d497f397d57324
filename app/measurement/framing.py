"""Server-sent events out of a whole body, by the WHATWG EventSource rules, with two of our three deliberate departures.

An `error:` field (no SSE field) is reported; an unterminated last block is not dispatched, and returned as the tail, where a
caller may still accept `[DONE]`. Each event carries the offset of the byte that completed it, so that a tape can say when
that byte arrived. The body is split as bytes: U+2028 and its like are text, and a cut character stays inside its event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class Event(msgspec.Struct, frozen=True, gc=False):
    """A dispatched event: `data` lines joined by a line feed; `end` is the offset just past the byte that ended the
    blank line: after a CR the event is complete, whether an LF follows or not.
    """

    data: bytes
    name: str
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed:
    """A body read as an event stream. `tail` is the data of an unterminated last block; `errors` are `error:` fields."""

    events: tuple[Event, ...]
    tail: bytes
    comments: int
    errors: tuple[bytes, ...]


def _lines(body: bytes) -> Iterator[tuple[bytes, int]]:
    """Lines without their ends, and the offset just past the byte that completed each (a CR needs no LF)."""
    start = len(_BOM) if body.startswith(_BOM) else 0
    for match in _LINE_END.finditer(body, start):
        yield body[start : match.start()], match.start() + 1
        start = match.end()
    if start < len(body):
        yield body[start:], len(body)


def frame(body: bytes) -> Framed:
    """Read a whole body as an event stream; never fails, whatever the bytes are."""
    reader = _Blocks()
    if b"\r" in body:
        for line, end in _lines(body):
            reader.line(line, end)
    else:
        reader.blocks(body)
    return Framed(
        events=tuple(reader.events), tail=b"\n".join(reader.data), comments=reader.comments, errors=tuple(reader.errors)
    )


@dataclass(slots=True)
class _Blocks:
    """Events as their lines come."""

    events: list[Event] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    comments: int = 0
    data: list[bytes] = field(default_factory=list)
    name: bytes = b""

    def blocks(self, body: bytes) -> None:
        """A body whose lines end with LF only. Nearly every block is one `data` line, which needs no look at its lines."""
        events = self.events
        end = len(_BOM) if body.startswith(_BOM) else 0
        *whole, rest = body[end:].split(b"\n\n")
        for block in whole:
            end += len(block) + 2
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append(Event(block[6:], "message", end))
                continue
            for line in block.split(b"\n"):
                self.line(line, end)
            self.line(b"", end)
        for line in rest.removesuffix(b"\n").split(b"\n"):
            self.line(line, len(body))

    def line(self, line: bytes, end: int) -> None:
        """One line without its end; `end` counts where it is the blank line that ends an event."""
        if not line:
            if self.data:
                name = self.name.decode("utf-8", "replace") or "message"
                self.events.append(Event(b"\n".join(self.data), name, end))
            self.data, self.name = [], b""
            return
        key, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match key:
            case b"":
                self.comments += 1
            case b"data":
                self.data.append(value)
            case b"event":
                self.name = value
            case b"error":
                self.errors.append(value)
            case _:
                pass
