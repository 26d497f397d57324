"""The server: many hosts on one port, each under `/{name}/v1`, written on an absolute schedule."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from app.catalog.load import Catalog
from app.errors import UsageError
from app.simulator.desk import Desk, Job
from app.simulator.faults import BEFORE_STREAM, Fault
from app.simulator.host import Host
from app.simulator.http import LAST, BadRequestError, Request, framed, head, json_answer, read_request, reset, whole
from app.simulator.order import parse_order

COMMENT_EVERY_S = 0.4
RETRY_AFTER_S = 2
STALL_S = 600.0
GATEWAY_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"
_STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "transfer-encoding": "chunked",
}
_REFUSALS: Mapping[Fault, tuple[int, str, str]] = {
    Fault.RATE_LIMITED: (429, "rate_limit_exceeded", "Rate limit reached, please slow down"),
    Fault.SERVER_ERROR: (500, "internal_error", "The server had an error while processing your request"),
    Fault.OVERLOADED: (503, "overloaded", "The engine is currently overloaded, please try again later"),
}


@dataclass(slots=True, kw_only=True)
class Server:
    """Serves hosts; made by `serve`."""

    desks: Mapping[str, Desk]
    port: int
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection."""
        task = self.group.create_task(self._connection(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    def drop(self) -> None:
        """End every connection that is open."""
        for task in tuple(self._open):
            task.cancel()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_request(reader)) is not None:
                keep = await self._answer(request, reader, writer)
                if writer.is_closing() or not (keep and request.keep):
                    break
                await writer.drain()
        except BadRequestError as error:
            writer.write(json_answer(400, {"error": {"message": str(error)}}, more={"connection": "close"}))
        except ConnectionError:
            pass  # the client went away: its right
        finally:
            writer.close()

    async def _answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False when the connection must not be used again."""
        if request.path == "/livez":
            writer.write(whole(200, b"ok\n", kind="text/plain"))
            return True
        name, _, route = request.path.lstrip("/").partition("/")
        desk = self.desks.get(name)
        if desk is None:
            writer.write(json_answer(404, {"error": {"message": f"no host {name!r}", "hosts": sorted(self.desks)}}))
            return True
        if (key := desk.host.key) is not None and request.headers.get("authorization") != f"Bearer {key}":
            writer.write(json_answer(401, desk.shape.complaint(401, "invalid_api_key", "Incorrect API key provided")))
            return True
        match (request.method, route):
            case ("GET", "v1/models"):
                writer.write(json_answer(200, {"object": "list", "data": [_model(desk.host)]}))
            case ("POST", "v1/chat/completions"):
                return await self._complete(desk, request, reader, writer)
            case _:
                writer.write(json_answer(404, desk.shape.complaint(404, "not_found", f"no route {request.path}")))
        return True

    async def _complete(self, desk: Desk, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        began = asyncio.get_running_loop().time()
        try:
            order = parse_order(request.body)
        except UsageError as error:
            writer.write(json_answer(400, desk.shape.complaint(400, "invalid_request", str(error))))
            return True
        if order.model != desk.host.model:
            complaint = desk.shape.complaint(404, "model_not_found", f"The model `{order.model}` does not exist")
            writer.write(json_answer(404, complaint))
            return True
        job = desk.take(order, now_s=time.time())
        if job.mishap is not None and job.mishap.fault in BEFORE_STREAM:
            writer.write(_refusal(desk, job.mishap.fault))
            return True
        desk.streams += 1
        try:
            if order.stream:
                return await _stream(job, began, reader, writer)
            await _until(began + job.plan.end_s)
            writer.write(whole(200, job.whole()))
            return True
        finally:
            desk.streams -= 1


async def _stream(job: Job, began: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send a plan's writes at their times; False after an end that a client cannot go on from."""
    writer.write(head(200, _STREAM_HEADERS))
    fault = None if job.mishap is None else job.mishap.fault
    writes = job.plan.writes
    if fault is Fault.EMPTY:
        writes = ()
    elif job.mishap is not None:
        writes = writes[: 1 + int(job.mishap.after * (len(writes) - 1))]
    if job.shape.comment:
        await _comments(job, began, writer)
    for write, data in zip(writes, job.events(), strict=False):
        chunk = framed(data)
        await _until(began + write.at_s)
        if writer.is_closing():
            return False
        writer.write(chunk)
    return await _end(job, fault, reader, writer)


async def _comments(job: Job, began: float, writer: asyncio.StreamWriter) -> None:
    """Comments as long as the first token is not there."""
    at_s = 0.0
    while at_s < job.plan.writes[0].at_s and not writer.is_closing():
        await _until(began + at_s)
        writer.write(framed(job.shape.comment))
        at_s += COMMENT_EVERY_S


async def _end(job: Job, fault: Fault | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    match fault:
        case Fault.RESET:
            reset(writer)
            return False
        case Fault.STALLED:
            with suppress(TimeoutError):
                async with asyncio.timeout(STALL_S):
                    await reader.read()
            return False
        case Fault.ERROR_INSIDE:
            writer.write(framed(job.trouble(500, "internal_error", "The engine stopped while generating")) + LAST)
        case Fault.TRUNCATED:
            writer.write(LAST)
        case _:
            writer.write(framed(job.ending()) + LAST)
    return True


async def _until(due: float) -> None:
    """Sleep until a time of the loop's clock; a time gone by does not even yield."""
    delay = due - asyncio.get_running_loop().time()
    if delay > 0:
        await asyncio.sleep(delay)


def _refusal(desk: Desk, fault: Fault) -> bytes:
    if fault is Fault.BAD_GATEWAY:
        return whole(502, GATEWAY_PAGE, kind="text/html")
    status, code, message = _REFUSALS[fault]
    more = {"retry-after": str(RETRY_AFTER_S)} if fault is Fault.RATE_LIMITED else None
    return json_answer(status, desk.shape.complaint(status, code, message), more=more)


def _model(host: Host) -> dict[str, Any]:
    return {"id": host.model, "object": "model", "created": 0, "owned_by": host.name}


@asynccontextmanager
async def serve(
    hosts: Iterable[Host], *, catalog: Catalog, address: str = "127.0.0.1", port: int = 0, seed: int = 0
) -> AsyncIterator[Server]:
    """A server that listens as long as the block runs, with a desk for each host; what is open then is dropped.

    Raises:
        OSError: the port is in use.
        NotFoundError: a host names what the catalogue does not know.
    """
    desks = {host.name: Desk(host=host, catalog=catalog, seed=seed) for host in hosts}
    for desk in desks.values():
        desk.pace(1)
    server = Server(desks=desks, port=port)
    listening = await asyncio.start_server(server.accept, address, port, start_serving=False)
    server.port = int(listening.sockets[0].getsockname()[1])
    async with server.group:
        await listening.start_serving()
        try:
            yield server
        finally:
            listening.close()
            server.drop()
