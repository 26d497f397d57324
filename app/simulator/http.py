"""As much HTTP/1.1 as a provider's clients need: requests with a length, answers in chunks, kept connections, real resets."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

MOST_BODY = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def keep(self) -> bool:
        """May the connection be used again?"""
        return self.headers.get("connection", "").lower() != "close"


class BadRequestError(Exception):
    """Not a request that this server can read; its text says why."""


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection; None when it has ended.

    Raises:
        BadRequestError: on anything but HTTP/1.1 with a `content-length`.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequestError("the head is too long") from error
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequestError("not HTTP/1.1")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not length.isdigit() or int(length) > MOST_BODY:
        raise BadRequestError("a body needs a content-length, of 4 MiB at most")
    try:
        body = await reader.readexactly(int(length))
    except asyncio.IncompleteReadError:
        return None
    return Request(method=parts[0], path=parts[1].partition("?")[0], headers=headers, body=body)


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Status line and headers."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def whole(status: int, body: bytes, *, kind: str = "application/json", more: Mapping[str, str] | None = None) -> bytes:
    """A whole answer with its length."""
    return head(status, {"content-type": kind, "content-length": str(len(body)), **(more or {})}) + body


def json_answer(status: int, payload: object, *, more: Mapping[str, str] | None = None) -> bytes:
    """A whole answer in JSON."""
    return whole(status, json.dumps(payload).encode(), more=more)


def framed(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST = b"0\r\n\r\n"
"""The end of a chunked body."""


def reset(writer: asyncio.StreamWriter) -> None:
    """End the connection with RST: what a crashed host's clients see."""
    sock: socket.socket | None = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
