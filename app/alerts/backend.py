"""Connections to guarded addresses: a network backend that resolves, checks, and connects to exactly what it checked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore2

from app.alerts.guard import Address, address_of
from app.alerts.threads import in_thread
from app.errors import ForbiddenError

Resolver = Callable[[str, int], Awaitable[Sequence[Address]]]


async def resolve(host: str, port: int) -> tuple[Address, ...]:
    """All addresses of a host, in the resolver's order, each once.

    Raises:
        ConnectError: the name is not known.
    """
    try:
        found = await in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        raise httpcore2.ConnectError(f"cannot resolve {host}: {error}") from error
    return tuple(dict.fromkeys(address_of(str(place[0])) for *_, place in found))


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects only where `guard` lets it.

    Args:
        guard: raises ForbiddenError for an address that may not be reached; None lets all pass.
        inner: makes the connections; it is given literal addresses only, so that nothing is resolved a second time.
        resolver: the addresses of a host.
    """

    def __init__(
        self,
        guard: Callable[[Address], None] | None,
        *,
        inner: httpcore2.AsyncNetworkBackend | None = None,
        resolver: Resolver = resolve,
    ) -> None:
        self._guard = guard
        self._inner = inner or httpcore2.AnyIOBackend()
        self._resolver = resolver

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's name
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first allowed address that answers.

        Raises:
            ForbiddenError: no address of the host is allowed.
            ConnectError, ConnectTimeout: no allowed address answered.
        """
        allowed, refused = self._sift(await self._resolver(host, port))
        failed: Exception | None = refused
        options = tuple(socket_options or ())
        for left, address in zip(range(len(allowed), 0, -1), allowed, strict=True):
            share = None if timeout is None else timeout / left
            try:
                return await self._inner.connect_tcp(
                    str(address), port, timeout=share, local_address=local_address, socket_options=options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore2.ConnectError(f"{host} has no address")

    def _sift(self, addresses: Sequence[Address]) -> tuple[list[Address], ForbiddenError | None]:
        allowed: list[Address] = []
        refused: ForbiddenError | None = None
        if self._guard is None:
            return list(addresses), None
        for address in addresses:
            try:
                self._guard(address)
            except ForbiddenError as error:
                refused = error
            else:
                allowed.append(address)
        return allowed, refused

    async def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002 - httpcore2's signature
        timeout: float | None = None,  # noqa: ASYNC109, ARG002 - httpcore2's name
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - httpcore2's signature
    ) -> httpcore2.AsyncNetworkStream:
        """Never.

        Raises:
            ForbiddenError: always; a socket of this machine is no public address.
        """
        raise ForbiddenError("connecting to a unix socket is not allowed")

    async def sleep(self, seconds: float) -> None:
        """Sleep on the loop."""
        await asyncio.sleep(seconds)
