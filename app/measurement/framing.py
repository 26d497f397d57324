"""Server-sent events out of a whole body, by the WHATWG EventSource rules, with two of our three deliberate departures.

An `error:` field (no SSE field) is reported; an unterminated last block is not dispatched, and returned as the tail, where a
caller may still accept `[DONE]`. Each event carries the offset of the byte that completed it, so that a tape can say when
that byte arrived. The body is split as bytes: U+2028 and its like are text, and a cut character stays inside its event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
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
    events: list[Event] = []
    errors: list[bytes] = []
    data: list[bytes] = []
    name = b""
    comments = 0
    for line, end in _lines(body):
        if not line:
            if data:
                events.append(Event(data=b"\n".join(data), name=name.decode("utf-8", "replace") or "message", end=end))
            data, name = [], b""
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"":
                comments += 1
            case b"data":
                data.append(value)
            case b"event":
                name = value
            case b"error":
                errors.append(value)
            case _:
                pass
    return Framed(events=tuple(events), tail=b"\n".join(data), comments=comments, errors=tuple(errors))
