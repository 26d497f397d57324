"""Liveness and readiness of a process without the API: two answers over a plain socket."""

from __future__ import annotations

import asyncio
import socket

from app.bootstrap.core import Core
from app.errors import BandwatchError

ANSWER_S = 0.8
_REASONS = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


async def serve_health(core: Core, door: socket.socket) -> None:
    """Answer `/livez` and `/readyz` until told to stop."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(5):
                line = await reader.readline()
                while (await reader.readline()).strip():
                    pass
                path = [*line.split(b" "), b"", b""][1].split(b"?")[0]
                status = await _status(core, path)
                body = f"{_REASONS[status].lower()}\n".encode()
                head = f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\n"
                writer.write(head.encode() + b"connection: close\r\n\r\n" + body)
                await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, sock=door)
    async with server:
        await core.stop.wait()


async def _status(core: Core, path: bytes) -> int:
    if path == b"/livez":
        return 200
    if path != b"/readyz":
        return 404
    if not core.ready.is_set():
        return 503
    try:
        async with asyncio.timeout(ANSWER_S):
            await core.database.check()
    except (BandwatchError, TimeoutError):
        return 503
    return 200
