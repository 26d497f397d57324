"""A small webhook receiver that verifies signatures and shows what arrived; the demo and the tests listen with it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.alerts.signing import verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request: its id, whether its signature fits, and its body."""

    id: str
    verified: bool
    body: Any


@dataclass(slots=True, kw_only=True)
class Receiver:
    """Answers what `status` says (200 by default) to each request, and remembers it."""

    secret: str
    status: Callable[[Received], int] = field(default=lambda _: 200)
    told: Callable[[Received], None] = field(default=lambda _: None)
    received: list[Received] = field(default_factory=list)

    async def serve(self, door: socket.socket) -> None:
        """Serve until cancelled."""
        server = await asyncio.start_server(self._answer, sock=door)
        async with server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:])}
                raw = await reader.readexactly(int(headers.get("content-length", "0")))
                status = self._take(headers, raw)
                writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode())
                await writer.drain()
        writer.close()

    def _take(self, headers: dict[str, str], raw: bytes) -> int:
        text = raw.decode("utf-8", "replace")
        try:
            body = json.loads(text)
        except ValueError:
            body = text
        found = Received(id=headers.get("webhook-id", ""), verified=verify(self.secret, headers=headers, body=text), body=body)
        self.received.append(found)
        self.told(found)
        return self.status(found)


def main() -> None:
    """Listen on a port of this machine and print each message as one line."""
    parser = argparse.ArgumentParser(prog="bandwatch-receiver")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--secret-env", required=True, help="the variable that holds the secret")
    parser.add_argument("--log", type=Path, default=None, help="append each message to this file, as JSON lines")
    arguments = parser.parse_args()
    receiver = Receiver(secret=os.environ.get(arguments.secret_env, ""), told=lambda found: _tell(found, arguments.log))
    door = socket.create_server(("127.0.0.1", arguments.port))
    door.setblocking(False)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(receiver, door))


async def _serve(receiver: Receiver, door: socket.socket) -> None:
    serving = asyncio.create_task(receiver.serve(door))
    gone = asyncio.create_task(_orphaned())
    await asyncio.wait({serving, gone}, return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, gone):
        task.cancel()


async def _orphaned() -> None:
    """Return when the parent that holds the other end of `BANDWATCH_LEASH_FD` is gone."""
    number = os.environ.get("BANDWATCH_LEASH_FD")
    gone = asyncio.Event()
    if number is not None:
        asyncio.get_running_loop().add_reader(int(number), gone.set)
    await gone.wait()


def _tell(found: Received, file: Path | None) -> None:
    kind = found.body.get("type") if isinstance(found.body, dict) else "?"
    data = found.body.get("data", {}) if isinstance(found.body, dict) else {}
    mark = "signature verified" if found.verified else "SIGNATURE WRONG"
    sys.stderr.write(f"webhook {kind} ({mark}): {data.get('summary', '')}\n")
    if file is not None:
        with file.open("a") as lines:
            lines.write(json.dumps({"id": found.id, "verified": found.verified, "body": found.body}) + "\n")


if __name__ == "__main__":
    main()
