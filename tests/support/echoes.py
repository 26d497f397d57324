"""A provider and a receiver that send back whatever they were told, in every shape that an error has."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

CONTENT = '{"choices":[{"index":0,"delta":{"content":"KEY "}}],"model":"KEY","system_fingerprint":"KEY"}'
USAGE = '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":12},"model":"KEY"}'
LONG = "x" * 285 + " KEY is not known here"


@dataclass
class Heard:
    """One request: its path, and all of its head and body."""

    path: str
    text: str

    @property
    def key(self) -> str:
        """The key that it carried; empty when there was none."""
        for line in self.text.split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() in {"authorization", "api-key"}:
                return value.strip().removeprefix("Bearer ")
        return ""


@dataclass
class Echoes:
    """Answers by the first segment of the path."""

    port: int = 0
    heard: list[Heard] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def at(self, start: str) -> list[Heard]:
        return [each for each in self.heard if each.path.startswith(start)]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError), contextlib.closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lengths = [line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length:")]
            body = (await reader.readexactly(int(lengths[0] if lengths else "0"))).decode("utf-8", "replace")
            one = Heard(path=head.split(" ")[1], text=head + body)
            self.heard.append(one)
            writer.write(self._answer(one))
            await writer.drain()

    def _answer(self, one: Heard) -> bytes:
        told = one.text.replace("\r\n", " | ")
        complaint = json.dumps({"error": {"message": f"Incorrect API key provided: {one.key}", "code": one.key, "asked": told}})
        match one.path.split("/")[1]:
            case "unknown-key":
                return answer(401, complaint, echo=one.key, www_authenticate=f'Bearer realm="{one.key}"')
            case "long":
                return answer(401, json.dumps({"error": {"message": LONG.replace("KEY", one.key)}}))
            case "broken":
                return answer(500, f"<html><h1>500</h1><pre>{told}</pre></html>", content_type="text/html")
            case "limited":
                return answer(429, complaint, retry_after="1", x_ratelimit_limit_requests=one.key)
            case "refused":
                return answer(400, complaint)
            case "zipped":
                return answer(401, complaint, zipped=True)
            case "moved":
                return answer(307, told, location=f"{self.url}/stolen/{one.key}?key={one.key}", set_cookie=f"k={one.key}")
            case "no-http":
                return f"HTTP/9 {one.key}\r\n{told}\r\n\r\n".encode()
            case "late-error":
                return stream(CONTENT.replace("KEY", one.key), complaint)
            case "cut":
                return stream(CONTENT.replace("KEY", one.key), CONTENT.replace("KEY", one.key)[:40], ended=False)
            case "html":
                return answer(200, f"<html>{told}</html>", content_type="text/html")
            case "fine":
                events = [CONTENT.replace("KEY", one.key)] * 12
                return stream(*events, USAGE.replace("KEY", one.key), "[DONE]")
            case _:
                return answer(500, told)


def answer(status: int, body: str, *, content_type: str = "application/json", zipped: bool = False, **headers: str) -> bytes:
    raw = gzip.compress(body.encode()) if zipped else body.encode()
    lines = [f"HTTP/1.1 {status} {'Echo'}", f"content-type: {content_type}", f"content-length: {len(raw)}", "connection: close"]
    lines += ["content-encoding: gzip"] if zipped else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + raw


def stream(*events: str, ended: bool = True) -> bytes:
    body = "".join(f"data: {event}\n\n" for event in events).encode()
    whole = b"%x\r\n%s\r\n" % (len(body), body) + (b"0\r\n\r\n" if ended else b"")
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + whole


async def end_tasks() -> None:
    """Cancel whatever else runs on this loop, and let transports close."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0.05)


@contextmanager
def echoing() -> Iterator[Echoes]:
    """The server on a free port, in a thread with a loop of its own."""
    echoes, ready, loop = Echoes(), threading.Event(), asyncio.new_event_loop()

    async def main() -> None:
        server = await asyncio.start_server(echoes.serve, "127.0.0.1", 0)
        echoes.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()
        await end_tasks()

    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield echoes
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
