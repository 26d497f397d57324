"""Receivers that misbehave as receivers do: real sockets, one scripted answer each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

Script = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Heard:
    """What a scripted receiver was sent."""

    url: str
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


def answer(status: int, body: str = "", **headers: str) -> Script:
    """A whole answer."""

    async def write(writer: asyncio.StreamWriter) -> None:
        lines = [
            f"HTTP/1.1 {status} X",
            f"content-length: {len(body)}",
            *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items()),
        ]
        writer.write("\r\n".join([*lines, "", body]).encode())

    return write


async def hang(_: asyncio.StreamWriter) -> None:
    """Say nothing for as long as anyone waits."""
    await asyncio.sleep(3600)


async def drip(writer: asyncio.StreamWriter) -> None:
    """A header that never ends, a byte at a time."""
    writer.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
    while True:
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.01)


async def flood(writer: asyncio.StreamWriter) -> None:
    """200 with a body that never ends."""
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        await writer.drain()


async def cut_after_status(writer: asyncio.StreamWriter) -> None:
    """200, a promise of a body, and the line is dead."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc")


async def cut(_: asyncio.StreamWriter) -> None:
    """Close without a word."""


async def garbage(writer: asyncio.StreamWriter) -> None:
    """No HTTP at all."""
    writer.write(b"220 smtp.example ESMTP\r\n")


@contextlib.asynccontextmanager
async def receiving(script: Script) -> AsyncIterator[Heard]:
    """Serve the script to each request on a loopback port."""

    open_now: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_now[task] = writer
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            heard.requests.append((head[0], headers, body))
            await script(writer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    heard = Heard(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield heard
    finally:
        server.close()
        for task, writer in open_now.items():
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*open_now, return_exceptions=True)
        await asyncio.sleep(0)
