"""A way to a Postgres that can be cut in the ways that networks are cut: refused, or silent."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto

from tests.support.echoes import end_tasks


class Way(Enum):
    OPEN = auto()
    SILENT = auto()
    """Connections stay, and are made, and nothing passes."""
    CLOSED = auto()
    """Connections end, and new ones are ended at once."""
    FORGOTTEN = auto()
    """As silent; and when it is over, connections of before it are silent for ever, as with a firewall that lost its table."""


@dataclass
class Line:
    """From a port of this machine to the socket of a server."""

    socket: str
    port: int = 0
    way: Way = Way.OPEN
    _age: int = 0
    _ends: list[asyncio.StreamWriter] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def set(self, way: Way) -> None:
        self._loop.call_soon_threadsafe(self._set, way)

    def _set(self, way: Way) -> None:
        self._age += self.way is Way.FORGOTTEN
        self.way = way
        if way is Way.CLOSED:
            for end in self._ends:
                end.close()
            self._ends.clear()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        age = self._age
        with contextlib.suppress(OSError), contextlib.closing(writer):
            while data := await reader.read(65536):
                while self.way in {Way.SILENT, Way.FORGOTTEN} or age < self._age:
                    await asyncio.sleep(0.05)
                writer.write(data)
                await writer.drain()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.way is Way.CLOSED:
            writer.close()
            return
        there, back = await asyncio.open_unix_connection(self.socket)
        self._ends += [writer, back]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._carry(reader, back))
            group.create_task(self._carry(there, writer))


@contextmanager
def line_to(socket: str, *, way: Way = Way.OPEN) -> Iterator[Line]:
    """The line, in a thread with a loop of its own."""
    line, ready, stop = Line(socket=socket, way=way), threading.Event(), asyncio.Event()

    async def main() -> None:
        server = await asyncio.start_server(line._connect, "127.0.0.1", 0)
        line.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()
        line._set(Way.CLOSED)
        await end_tasks()

    thread = threading.Thread(target=lambda: line._loop.run_until_complete(main()), daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield line
    finally:
        line._loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        line._loop.close()
