"""A scripted HTTP server on a real socket, in a thread of its own, which does to the wire just what it is told."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from tests.support.scenarios import Scenario

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def request_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return head + (await reader.readexactly(length) if length else b"")


def framed(raw: bytes) -> bytes:
    return f"{len(raw):x}\r\n".encode() + raw + b"\r\n"


def head(status: int = 200, *, content_type: str = "text/event-stream", more: str = "") -> bytes:
    return f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n{more}\r\n".encode()


def reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def play(scenario: Scenario, wrote: list[tuple[int, int]] | None = None) -> Script:
    """The scenario as a script; `wrote` gets the monotonic nanoseconds just before and after each write."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        await request_of(reader)
        began = loop.time()
        writer.write(head(scenario.status, content_type="application/json" if scenario.status != 200 else "text/event-stream"))
        for at, raw in scenario.writes:
            await asyncio.sleep(max(0.0, began + at / 1000 - loop.time()))
            before = time.monotonic_ns()
            writer.write(framed(raw))
            if wrote is not None:
                wrote.append((before, time.monotonic_ns()))
        if scenario.end == "reset":
            await asyncio.sleep(0.05)
            reset(writer)
            return
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return script


@contextmanager
def serving(script: Script, *, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve the script to every connection; yields the port."""
    ready: list[int] = []
    started = threading.Event()
    loop = asyncio.new_event_loop()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)  # a task that is cancelled before its first step closes nothing
        tasks.append(loop.create_task(handle(reader, writer)))

    async def main() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
        ready.append(server.sockets[0].getsockname()[1])
        started.set()
        async with server:
            await server.serve_forever()

    def run() -> None:
        asyncio.set_event_loop(loop)
        task = loop.create_task(main())
        stop.append(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            for left in asyncio.all_tasks(loop):
                left.cancel()
            for writer in writers:
                writer.transport.abort()
            loop.run_until_complete(asyncio.sleep(0.01))
            loop.close()

    stop: list[Callable[[], object]] = []
    writers: list[asyncio.StreamWriter] = []
    tasks: list[asyncio.Task[None]] = []
    thread = threading.Thread(target=run)
    thread.start()
    started.wait(10)
    try:
        yield ready[0]
    finally:
        stop[0]()
        thread.join(10)
