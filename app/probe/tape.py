"""Bytes and stamps of one connection, taken where they arrive. Nothing is parsed here beyond noticing the body's end."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

DONE = b"[DONE]"
HEAD_END = b"\r\n\r\n"
_CRLF = b"\r\n"


class BodyEnd:
    """Notices the end of a body as cheaply as can be: by counting, never by parsing what is inside."""

    __slots__ = ("_held", "_missing", "ended", "mode")

    def __init__(self, *, chunked: bool, length: int | None) -> None:
        self.mode = "chunked" if chunked else "length" if length is not None else "close"
        self._missing = 0 if length is None or chunked else length
        self._held = b""
        self.ended = self.mode == "length" and length == 0

    def feed(self, data: bytes) -> bool:
        """Take the next raw bytes of the body; True once it is over. Broken framing counts as over."""
        if self.ended or self.mode == "close":
            return self.ended
        if self._missing > len(data) and not self._held:
            self._missing -= len(data)
            return False
        if self.mode == "length":
            self._missing -= len(data)
            self.ended = self._missing <= 0
            return self.ended
        return self._walk(data)

    def _walk(self, data: bytes) -> bool:
        """From chunk header to chunk header; what stands before the first one belongs to the chunk before."""
        position = self._missing
        if self._held:
            data, position, self._held = self._held + data, 0, b""
        self._missing = 0
        while True:
            line = data.find(_CRLF, position)
            if line < 0:
                self._held = data[position:]
                self.ended = len(self._held) > 64
                return self.ended
            size = _chunk_size(data[position:line])
            if size is None:
                self.ended = True
                return True
            if size <= 0:
                self.ended = data.find(HEAD_END, line) >= 0
                self._held = b"" if self.ended else data[position:]
                return self.ended
            position = line + 2 + size + 2
            if position >= len(data):
                self._missing = position - len(data)
                return False


def _chunk_size(line: bytes) -> int | None:
    try:
        return int(line, 16)
    except ValueError:
        digits, extended, _ = line.partition(b";")
        return _chunk_size(digits) if extended else None


@dataclass(slots=True)
class Tape:
    """What one exchange left on the wire: stamps (monotonic ns), raw bytes of each read, and when things happened."""

    stamps: array[int] = field(default_factory=lambda: array("q"))
    reads: list[bytes] = field(default_factory=list)
    size: int = 0
    limit: int = 16 << 20
    kernel_stamps: int = 0
    dns_start: int | None = None
    dns_end: int | None = None
    connected: int | None = None
    tls_done: int | None = None
    request_sent: int | None = None
    eof: bool = False
    broken: BaseException | None = None
    oversize: bool = False
    done_at: int | None = None
    """When `[DONE]` was seen."""
    on_sent: Callable[[], None] | None = None
    """Called each time a part of the request has been written."""
    _end: BodyEnd | None = None
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, stamp: int, data: bytes, *, kernel: bool) -> None:
        """One read. Wakes somebody only when the body is over, or `[DONE]` came."""
        self.stamps.append(stamp)
        self.reads.append(data)
        self.size += len(data)
        self.kernel_stamps += kernel
        if self.size > self.limit:
            self.oversize = True
            self._over.set()
            return
        if self.done_at is None and DONE in data:
            self.done_at = stamp
            if self._end is not None:
                self._over.set()
        if self._end is not None and self._end.feed(data):
            self._over.set()

    def sent(self, stamp: int) -> None:
        """A part of the request has gone to the kernel; the last call is the one that counts."""
        self.request_sent = stamp
        if self.on_sent is not None:
            self.on_sent()

    def finish(self, error: BaseException | None = None) -> None:
        """The connection ended, orderly (None) or not."""
        self.eof = True
        self.broken = self.broken or error
        self._over.set()

    @property
    def first_byte(self) -> int | None:
        """The stamp of the first read of the answer."""
        return self.stamps[0] if self.stamps else None

    @property
    def whole(self) -> bool:
        """Has the body come to its orderly end?"""
        if self._end is None:
            return False
        return self._end.ended or (self._end.mode == "close" and self.eof and self.broken is None)

    def raw(self) -> bytes:
        """Everything that was read."""
        return b"".join(self.reads)

    def watch_body(self, *, chunked: bool, length: int | None) -> int:
        """From now on notice the body's end; returns the offset where the body begins in the raw bytes."""
        raw = self.raw()
        offset = head_length(raw)
        self._end = BodyEnd(chunked=chunked, length=length)
        if self._end.feed(raw[offset:]) or self._end.ended or self.eof or self.oversize or self.done_at is not None:
            self._over.set()
        return offset

    async def wait(self, seconds: float) -> bool:
        """Wait for the body's end, `[DONE]`, the connection's end or the size bound; False when none came in time."""
        if self._over.is_set():
            return True
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._over.wait()
        except TimeoutError:
            return False
        return True

    async def drain(self, seconds: float) -> None:
        """After `[DONE]`: let the body end by itself, for at most `seconds`, so that a kept connection stays usable."""
        if self.whole or self.eof or self.oversize:
            return
        self._over.clear()
        await self.wait(seconds)


def head_length(raw: bytes) -> int:
    """Where the final response's head ends; informational responses (100, 103) before it belong to the head."""
    offset = 0
    while True:
        end = raw.find(HEAD_END, offset)
        if end < 0:
            return len(raw)
        informational = raw[offset + 9 : offset + 10] == b"1" and raw[offset : offset + 5] == b"HTTP/"
        offset = end + len(HEAD_END)
        if not informational:
            return offset
