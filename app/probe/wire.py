"""The network under httpx2: our own backend for httpcore2, which records on a `Tape` what passes.

Sockets are read by a callback of the event loop, so no coroutine wakes per chunk; TLS runs on memory buffers in the same
callback, so that the kernel's stamps stay with their bytes. The tape of the running exchange is a context variable: one
call, one task, one tape.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import httpcore2

from app.measurement.recording import FailureKind
from app.probe.failures import WireFailure, of_connection, of_resolution, of_tls
from app.probe.stamps import ANCILLARY, KernelClock, ask_for_stamps
from app.probe.tape import Tape

Guard = Callable[[ipaddress.IPv4Address | ipaddress.IPv6Address], None]
"""Raises ForbiddenError for an address that must not be connected to."""

TAPE: ContextVar[Tape] = ContextVar("tape")
READ_BYTES = 65536
STAGGER_S = 2.0
"""How long one address may take while others are left."""


class WireStream(httpcore2.AsyncNetworkStream):
    """A connection that stamps every read. Plain until `start_tls`."""

    def __init__(self, sock: socket.socket, tape: Tape, *, kernel: bool) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._clock = KernelClock()
        self._kernel = kernel
        self._pending: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._tls: ssl.SSLObject | None = None
        self._ready = False
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._closed = False
        self.tape = tape
        self._loop.add_reader(sock.fileno(), self._readable)

    def _readable(self) -> None:
        try:
            if self._kernel:
                data, ancillary, _, _ = self._sock.recvmsg(READ_BYTES, ANCILLARY)
                stamp, by_kernel = self._clock.stamp(ancillary)
            else:
                data = self._sock.recv(READ_BYTES)
                stamp, by_kernel = time.monotonic_ns(), False
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        if not data:
            self._end(None)
        elif self._tls is None:
            self.tape.take(stamp, data, kernel=by_kernel)
            self._pending.append(data)
            if self._waiter is not None:
                self._wake()
        else:
            self._decrypt(stamp, data, by_kernel)

    def _decrypt(self, stamp: int, data: bytes, by_kernel: bool) -> None:  # noqa: FBT001 - the hot path
        incoming, tls = self._incoming, self._tls
        incoming.write(data)
        if not self._ready:
            self._wake()
            return
        text = b""
        ended: BaseException | None = None
        closed = False
        try:
            while True:
                piece = tls.read(READ_BYTES)  # type: ignore[union-attr]
                if not piece:
                    closed = True
                    break
                text = text + piece if text else piece
                if not incoming.pending and not tls.pending():  # type: ignore[union-attr]
                    break  # nothing is left, not even a part of a record: asking again costs an exception
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            closed = True
        except ssl.SSLError as error:
            ended = error
        if text:
            self.tape.take(stamp, text, kernel=by_kernel)
            self._pending.append(text)
            if self._waiter is not None:
                self._wake()
        if closed or ended is not None:
            self._end(ended)

    def _end(self, error: BaseException | None) -> None:
        self._stop_reading()
        self.tape.finish(error)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _stop_reading(self) -> None:
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock.fileno())

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109, ARG002 - httpcore2's name
        """Bytes for h11: what is there, else the next to come. Deadlines are the prober's, not the read's."""
        while not self._pending:
            if self.tape.broken is not None:
                raise WireFailure(FailureKind.RESET, "the connection was reset")
            if self.tape.eof:
                return b""
            await self._wait()
        data = b"".join(self._pending)
        self._pending.clear()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109, ARG002 - httpcore2's name
        """Write, and stamp when the last byte has gone to the kernel."""
        if (tape := TAPE.get(None)) is not None and tape is not self.tape:
            self.tape = tape  # a kept connection, a new exchange
        if self._tls is not None:
            self._tls.write(buffer)
            buffer = self._outgoing.read()
        await self._loop.sock_sendall(self._sock, buffer)
        self.tape.sent(time.monotonic_ns())

    async def aclose(self) -> None:
        """Close at once."""
        if not self._closed:
            self._closed = True
            self._stop_reading()
            self._sock.close()
            self._wake()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109, ARG002 - httpcore2's name
    ) -> httpcore2.AsyncNetworkStream:
        """Handshake on memory buffers; stamped when it is done."""
        self._tls = ssl_context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        try:
            while not self._ready:
                try:
                    self._tls.do_handshake()
                    self._ready = True
                except ssl.SSLWantReadError:
                    pass
                if to_send := self._outgoing.read():
                    await self._loop.sock_sendall(self._sock, to_send)
                if not self._ready:
                    if self.tape.eof:
                        raise self.tape.broken or ssl.SSLError("the server hung up")
                    await self._wait()
        except (ssl.SSLError, OSError) as error:
            await self.aclose()
            raise of_tls(error, server_hostname or "the server") from error
        self.tape.tls_done = time.monotonic_ns()
        return self

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore2's signature
        """`tape`, `ssl_object`, `socket`, `is_readable` (a kept connection that has ended is)."""
        match info:
            case "tape":
                return self.tape
            case "ssl_object":
                return self._tls
            case "socket":
                return self._sock
            case "is_readable":
                return self.tape.eof or bool(self._pending)
            case _:
                return None


class WireBackend(httpcore2.AsyncNetworkBackend):
    """Resolves, connects and marks both. `guard` is asked about the address that is really connected to."""

    def __init__(self, *, guard: Guard | None = None, kernel: bool = True) -> None:
        self._guard = guard
        self._kernel = kernel

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109, ARG002 - httpcore2's name
        local_address: str | None = None,  # noqa: ARG002 - httpcore2's signature
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first address that answers.

        Raises:
            WireFailure: by phase, with its kind.
            ForbiddenError: the guard refused every address.
        """
        tape = TAPE.get()
        addresses = await _resolve(host, port, tape)
        last: Exception | None = None
        for number, (family, address) in enumerate(addresses):
            if self._guard is not None:
                self._guard(ipaddress.ip_address(str(address[0]).split("%", 1)[0]))
            try:
                rest = len(addresses) - number - 1
                sock = await _connect(family, address, seconds=STAGGER_S if rest else None)
            except (OSError, TimeoutError) as error:
                last = error
                continue
            tape.connected = time.monotonic_ns()
            for option in socket_options or ():
                sock.setsockopt(*option)
            return WireStream(sock, tape, kernel=self._kernel and ask_for_stamps(sock))
        place = f"{host}:{port}"
        if isinstance(last, OSError) and not isinstance(last, TimeoutError):
            raise of_connection(last, place) from last
        raise WireFailure(FailureKind.CONNECT, f"cannot connect to {place}: no address answered") from last

    async def sleep(self, seconds: float) -> None:
        """Sleep on the loop."""
        await asyncio.sleep(seconds)


async def _resolve(host: str, port: int, tape: Tape) -> list[tuple[int, tuple[Any, ...]]]:
    """Addresses in the resolver's order. A literal address needs no DNS, and gets no DNS marks."""
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        tape.dns_start = time.monotonic_ns()
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise of_resolution(error, host) from error
        tape.dns_end = time.monotonic_ns()
        return [(family, address) for family, _, _, _, address in found]
    return [(socket.AF_INET6 if literal.version == 6 else socket.AF_INET, (host, port))]


async def _connect(family: int, address: tuple[Any, ...], *, seconds: float | None) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock
