"""The HTTP clients of alerts: one for channels of the config file, one behind the guard for channels made by the API.

Redirects are not followed (a receiver must not send our signed messages, or us, elsewhere), proxies and certificates
from the environment are not used, and cookies are not kept from one message to the next.
"""

from __future__ import annotations

import http.cookiejar
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpcore2
import httpx2

from app.alerts.backend import GuardedBackend
from app.alerts.guard import Address, literal_of
from app.targets.model import Channel

KEPT_CONNECTIONS = 20
KEPT_S = 30.0
CONNECT_S = 6.0
"""For all addresses of a host together, and again for TLS; the attempt as a whole has a deadline of its own."""


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._response.aiter_stream():
            yield part

    async def aclose(self) -> None:
        await self._response.aclose()


class Transport(httpx2.AsyncBaseTransport):
    """httpx2 on a connection pool with a network backend of ours. Raises httpcore2's errors as they are."""

    def __init__(self, *, tls: ssl.SSLContext, backend: httpcore2.AsyncNetworkBackend) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=None,  # the courier bounds them by channel; a pool's bound would let one channel starve another
            max_keepalive_connections=KEPT_CONNECTIONS,
            keepalive_expiry=KEPT_S,
            network_backend=backend,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        url = request.url
        answer = await self._pool.handle_async_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(answer.status, headers=answer.headers, stream=_Stream(answer), extensions=answer.extensions)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


@dataclass(slots=True, kw_only=True)
class Clients:
    """Both clients, each created once, when it is first needed.

    Args:
        guard: asked about each address that a channel made by the API would connect to.
        tls: None makes one context, shared by both, that trusts the system's authorities.
    """

    guard: Callable[[Address], None]
    tls: ssl.SSLContext | None = None
    _made: dict[str, httpx2.AsyncClient] = field(default_factory=dict)

    def check(self, channel: Channel, urls: Sequence[str]) -> None:
        """Look at addresses that stand in URLs, however they are spelt. Names are looked at when they are connected to.

        Raises:
            ForbiddenError: the channel was made by the API, and the guard refuses one of them.
        """
        if channel.origin == "file":
            return
        for url in urls:
            if (address := literal_of(host_of(url))) is not None:
                self.guard(address)

    def client(self, channel: Channel) -> httpx2.AsyncClient:
        """The client that may be used for this channel."""
        if channel.origin not in self._made:
            self.tls = self.tls or ssl.create_default_context()
            backend = GuardedBackend(None if channel.origin == "file" else self.guard)
            self._made[channel.origin] = httpx2.AsyncClient(
                transport=Transport(tls=self.tls, backend=backend),
                timeout=httpx2.Timeout(None, connect=CONNECT_S),
                follow_redirects=False,
                trust_env=False,
                cookies=_no_cookies(),
            )
        return self._made[channel.origin]

    async def aclose(self) -> None:
        """Close what was created."""
        for client in self._made.values():
            await client.aclose()
        self._made.clear()


def host_of(url: str) -> str:
    """The host of a URL as it is written; empty where none can be told."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _no_cookies() -> http.cookiejar.CookieJar:
    return http.cookiejar.CookieJar(policy=http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
