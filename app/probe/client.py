"""httpx2 over our wire, made once a process: a client costs 40-120 ms of CPU, a probe must not pay for it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import anyio
import httpcore2
import httpx2

from app.probe.stamps import keep_stamping
from app.probe.wire import Guard, WireBackend
from app.targets.model import Connection

MANY = 10_000


class _Body(httpx2.AsyncByteStream):
    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()  # type: ignore[attr-defined]  # httpcore2's stream has it


class WireTransport(httpx2.AsyncBaseTransport):
    """An httpx2 transport over an httpcore2 pool with our backend; HTTP/1.1 only."""

    def __init__(self, *, tls: ssl.SSLContext, backend: WireBackend, keep: int) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls, network_backend=backend, max_connections=MANY, max_keepalive_connections=keep, http1=True
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One exchange; httpcore2's and our own exceptions pass through as they are."""
        answer = await self._pool.handle_async_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream),  # type: ignore[arg-type]  # an async iterator
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


@dataclass(slots=True, kw_only=True)
class Clients:
    """One client for fresh connections and one for kept ones, on one TLS context.

    Args:
        guard: asked about every address that is connected to; None allows all.
        tls: the context; None makes one that trusts the system's authorities.
        kernel: take the kernel's stamps where there are any.
    """

    guard: Guard | None = None
    tls: ssl.SSLContext | None = None
    kernel: bool = True
    _made: dict[Connection, httpx2.AsyncClient] = field(default_factory=dict)
    _stamping: socket.socket | None = None

    def __post_init__(self) -> None:
        if self.kernel:
            self._stamping = keep_stamping()

    def client(self, connection: Connection) -> httpx2.AsyncClient:
        """The client for that kind of connection. No redirects (a key must not travel), no proxies from the environment."""
        if connection not in self._made:
            anyio.Event()  # loads anyio's backend now, which would count as connecting in the first call of a process
            if self.tls is None:
                self.tls = ssl.create_default_context()
            keep = 0 if connection is Connection.COLD else MANY
            transport = WireTransport(tls=self.tls, backend=WireBackend(guard=self.guard, kernel=self.kernel), keep=keep)
            self._made[connection] = httpx2.AsyncClient(
                transport=transport, timeout=None, follow_redirects=False, trust_env=False
            )
        return self._made[connection]

    async def aclose(self) -> None:
        """Close both."""
        for client in self._made.values():
            await client.aclose()
        self._made.clear()
        if self._stamping is not None:
            self._stamping.close()
            self._stamping = None
