"""One call: request out, tape in, four deadlines, and a Recording whatever happens."""

from __future__ import annotations

import asyncio
import time
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any

import httpx2

from app.measurement.chunked import unchunk
from app.measurement.progress import progress
from app.measurement.recording import Failure, FailureKind, HostHealth, Marks, Recording, StampSource, Tape
from app.probe.failures import WireFailure, translate
from app.probe.tape import Tape as WireTape
from app.probe.tape import head_length
from app.probe.wire import TAPE
from app.targets.model import Connection, Deadlines

DRAIN_S = 0.25
UNREAD = frozenset({"set-cookie", "authorization", "api-key", "x-api-key", "proxy-authorization"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is sent, where to, and how long it may take."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    connection: Connection
    deadlines: Deadlines


@dataclass(slots=True)
class _Answer:
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    headers_at: int | None = None
    offset: int | None = None


async def exchange(
    client: httpx2.AsyncClient, call: Call, recording: Recording, *, watch: Callable[[WireTape], None] | None = None
) -> None:
    """Make the call and fill the recording; what the provider does wrong becomes its `failure`.

    `watch` is shown the tape before the call starts; whoever wants to see a call under way looks at it now and then.

    Raises:
        asyncio.CancelledError: when we are told to stop; the recording says so.
    """
    tape = WireTape()
    answer = _Answer()
    token = TAPE.set(tape)
    if watch is not None:
        watch(tape)
    try:
        await _run(client, call, tape, answer)
    except asyncio.CancelledError:
        recording.failure = Failure(kind=FailureKind.CANCELLED, text="the monitor was told to stop")
        raise
    except Exception as error:  # noqa: BLE001 - translated, or raised again
        failure = translate(error)
        recording.failure = Failure(kind=failure.kind, text=str(failure))
    finally:
        TAPE.reset(token)
        _fill(recording, tape, answer)


async def _run(client: httpx2.AsyncClient, call: Call, tape: WireTape, answer: _Answer) -> None:
    began = time.monotonic_ns()
    request = client.build_request("POST", call.url, headers=dict(call.headers), json=dict(call.body))
    response = await _head(client, request, call.deadlines, tape, began)
    try:
        answer.headers_at = tape.stamps[-1] if tape.stamps else time.monotonic_ns()
        answer.status = response.status_code
        names = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers.raw]
        answer.headers = tuple(pair for pair in names if pair[0] not in UNREAD)
        chunked = "chunked" in response.headers.get("transfer-encoding", "").lower()
        length = response.headers.get("content-length", "")
        answer.offset = tape.watch_body(chunked=chunked, length=int(length) if length.isdigit() else None)
        await _body(call.deadlines, tape, answer, began)
        if call.connection is Connection.WARM and tape.whole:
            await response.aread()  # lets h11 see the end, so that the connection can be used again
    finally:
        await response.aclose()


async def _head(
    client: httpx2.AsyncClient, request: httpx2.Request, deadlines: Deadlines, tape: WireTape, began: int
) -> httpx2.Response:
    """The response's head: under the connect deadline until the request is sent, and the first-token one from then on."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    total = start + deadlines.total_s
    try:
        async with asyncio.timeout_at(min(start + deadlines.connect_s, total)) as deadline:
            tape.on_sent = lambda: deadline.reschedule(min(loop.time() + deadlines.first_token_s, total))
            return await client.send(request, stream=True)
    except TimeoutError as error:
        if tape.request_sent is None:
            text = f"no connection within {deadlines.connect_s:g} s: {_phase(tape)}"
            raise WireFailure(FailureKind.DEADLINE_CONNECT, text) from error
        raise _first_token_missed(deadlines, tape.request_sent, began) from error
    finally:
        tape.on_sent = None


def _phase(tape: WireTape) -> str:
    if tape.dns_start is not None and tape.dns_end is None:
        return "the name was not resolved"
    if tape.connected is None:
        return "TCP did not connect"
    return "TLS did not finish" if tape.tls_done is None else "the request could not be written"


def _first_token_missed(deadlines: Deadlines, sent: int, began: int) -> WireFailure:
    if deadlines.total_s * 1e9 - (sent - began) < deadlines.first_token_s * 1e9:
        return WireFailure(FailureKind.DEADLINE_TOTAL, f"not over within {deadlines.total_s:g} s")
    return WireFailure(FailureKind.DEADLINE_FIRST_TOKEN, f"no output within {deadlines.first_token_s:g} s")


async def _body(deadlines: Deadlines, tape: WireTape, answer: _Answer, began: int) -> None:
    """Wait for the body's end. The tape is read only when a deadline's timer fires."""
    sent = tape.request_sent or began
    total = began + int(deadlines.total_s * 1e9)
    first = sent + int(deadlines.first_token_s * 1e9)
    stall = int(deadlines.stall_s * 1e9)
    check = min(first, sent + stall, total)
    while not await tape.wait((check - time.monotonic_ns()) / 1e9):
        now = time.monotonic_ns()
        seen = progress(tape_of(tape, offset=answer.offset, headers=answer.headers), content_type=_content_type(answer))
        if seen.done:
            break
        if now >= total:
            raise WireFailure(FailureKind.DEADLINE_TOTAL, f"not over within {deadlines.total_s:g} s")
        if seen.last_output_ns is None:
            if now >= first:
                raise _first_token_missed(deadlines, sent, began)
            check = min(first, total)
        elif now - seen.last_output_ns >= stall:
            raise WireFailure(FailureKind.STALL, f"no output for {deadlines.stall_s:g} s")
        else:
            check = min(seen.last_output_ns + stall, total)
    if tape.oversize:
        raise WireFailure(FailureKind.OVERSIZE, f"the body is larger than {tape.limit >> 20} MiB")
    if tape.done_at is not None:
        await tape.drain(DRAIN_S)
    if tape.broken is not None:
        raise tape.broken


def _content_type(answer: _Answer) -> str | None:
    return next((value for name, value in answer.headers if name == "content-type"), None)


def tape_of(wire: WireTape, *, offset: int | None, headers: tuple[tuple[str, str], ...]) -> Tape:
    """The body as measurement wants it: transfer and content coding undone, and when its bytes were there."""
    if offset is None:
        return Tape()
    raw = wire.raw()
    chunked = any(name == "transfer-encoding" and "chunked" in value.lower() for name, value in headers)
    totals = array("q", accumulate(map(len, wire.reads)))
    head = bisect_right(totals, offset)
    """Reads that brought nothing of the body."""
    stamps = wire.stamps[head:]
    inside = [total - offset for total in totals[head:]]
    body = raw[offset:]
    if chunked:
        plain = unchunk(body)
        body, ends = plain.body, plain.available(inside)
    else:
        ends = array("q", inside)
    coding = next((value.lower() for name, value in headers if name == "content-encoding"), "identity")
    if coding in {"gzip", "deflate"}:
        body, ends = _inflate(body, ends, coding)
    return Tape(body=body, stamps=stamps, ends=ends)


def _inflate(body: bytes, ends: array[int], coding: str) -> tuple[bytes, array[int]]:
    """Undo a compression that was not asked for, read by read, so that each read keeps its bytes."""
    engine = zlib.decompressobj(47 if coding == "gzip" else zlib.MAX_WBITS)
    out: list[bytes] = []
    new, start, total = array("q"), 0, 0
    for end in ends:
        try:
            piece = engine.decompress(body[start:end], (16 << 20) - total)
        except zlib.error:
            piece = b""
        out.append(piece)
        total += len(piece)
        new.append(total)
        start = end
    return b"".join(out), new


def _fill(recording: Recording, wire: WireTape, answer: _Answer) -> None:
    marks = recording.marks
    marks.dns_start, marks.dns_end = wire.dns_start, wire.dns_end
    marks.connected, marks.tls_done = wire.connected, wire.tls_done
    marks.request_sent, marks.first_byte = wire.request_sent, wire.first_byte
    marks.headers, marks.closed = answer.headers_at, time.monotonic_ns()
    recording.status, recording.headers = answer.status, answer.headers
    recording.tape = tape_of(wire, offset=answer.offset, headers=answer.headers)
    recording.ended = wire.whole
    recording.stamp_source = _source(wire)


def _source(wire: WireTape) -> StampSource:
    if not wire.stamps:
        return StampSource.NONE
    if not wire.kernel_stamps:
        return StampSource.LOOP
    return StampSource.KERNEL if wire.kernel_stamps == len(wire.stamps) else StampSource.MIXED


def new_recording(
    *, base_url: str, model: str, recipe: str, dialect: str, connection: Connection, started_at: datetime, expected: int
) -> Recording:
    """A recording of a call that is about to start."""
    return Recording(
        base_url=base_url,
        model=model,
        recipe=recipe,
        dialect=dialect,
        marks=Marks(started=time.monotonic_ns()),
        started_at=started_at,
        connection=connection,
        host=HostHealth(),
        expected_output_tokens=expected,
    )


__all__ = ["Call", "exchange", "head_length", "new_recording", "tape_of"]
