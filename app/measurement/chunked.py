"""Undo HTTP/1.1 chunked transfer coding, once, after the stream."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

MOST_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchunked:
    """A decoded body and how its bytes map to the wire.

    `body_ends[i]` is how many body bytes the pieces up to i hold, `raw_ends[i]` the raw offset just past piece i's data.
    `ended`: the last chunk was there. `broken`: what should be a chunk size is none; what came before it is kept.
    """

    body: bytes
    body_ends: array[int]
    raw_ends: array[int]
    ended: bool
    broken: bool

    def available(self, raw: Iterable[int]) -> array[int]:
        """How many body bytes were there once the first n raw bytes were, for each n of `raw`, which only grows."""
        raw_ends, body_ends = self.raw_ends, self.body_ends
        found = array("q")
        piece, start, pieces = 0, 0, len(raw_ends)
        for size in raw:
            while piece < pieces and raw_ends[piece] <= size:
                start = body_ends[piece]
                piece += 1
            part = body_ends[piece] - raw_ends[piece] + size if piece < pieces else start
            found.append(max(part, start))
        return found


def unchunk(raw: bytes) -> Unchunked:
    """Decode a chunked body that may end anywhere."""
    pieces: list[bytes] = []
    body_ends, raw_ends = array("q"), array("q")
    position = total = 0
    ended = broken = False
    while position < len(raw):
        line_end = raw.find(b"\r\n", position)
        if line_end < 0:
            break
        size = _size(raw[position:line_end])
        if size is None:
            broken = True
            break
        if size == 0:
            ended = True
            break
        start = line_end + 2
        piece = raw[start : start + size]
        if piece:
            pieces.append(piece)
            total += len(piece)
            body_ends.append(total)
            raw_ends.append(start + len(piece))
        position = start + size + 2
    return Unchunked(body=b"".join(pieces), body_ends=body_ends, raw_ends=raw_ends, ended=ended, broken=broken)


def _size(line: bytes) -> int | None:
    digits = line.split(b";", 1)[0].strip()
    if not digits or len(digits) > MOST_DIGITS or digits.strip(b"0123456789abcdefABCDEF"):
        return None
    return int(digits, 16)
