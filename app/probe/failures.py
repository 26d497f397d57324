"""What goes wrong on the wire, as one exception with a kind; foreign errors are translated here and nowhere else."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl

import httpcore2
import httpx2

from app.errors import BandwatchError
from app.measurement.recording import FailureKind

_OURS = frozenset(
    {
        errno.ENETUNREACH,
        errno.ENETDOWN,
        errno.EHOSTUNREACH,
        errno.EADDRNOTAVAIL,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.EACCES,
        errno.EPERM,
    }
)
"""System errors that tell of this host and not of the provider."""


class WireFailure(Exception):  # noqa: N818 - a failure is an outcome here, not a fault of ours
    """The wire gave up; `kind` says at which point."""

    def __init__(self, kind: FailureKind, text: str) -> None:
        self.kind = kind
        super().__init__(text)


def of_resolution(error: OSError, host: str) -> WireFailure:
    """A name that is not known is the provider's; a resolver that does not answer is ours."""
    unknown = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
    if isinstance(error, socket.gaierror) and error.errno in unknown:
        return WireFailure(FailureKind.DNS, f"the name {host} is not known")
    return WireFailure(FailureKind.LOCAL, f"the resolver of this host does not answer for {host}: {error.strerror or error}")


def of_connection(error: OSError, place: str) -> WireFailure:
    """No route is ours; refused, reset and unreachable ports are the provider's."""
    kind = FailureKind.LOCAL if error.errno in _OURS else FailureKind.CONNECT
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return WireFailure(kind, f"cannot connect to {place}: {reason}")


def of_tls(error: Exception, host: str) -> WireFailure:
    """A failed handshake, in the library's words."""
    reason = getattr(error, "verify_message", None) or getattr(error, "reason", None) or str(error) or type(error).__name__
    return WireFailure(FailureKind.TLS, f"TLS with {host} failed: {reason}")


def translate(error: BaseException) -> WireFailure:
    """Any exception of a call as a failure.

    Raises:
        BaseException: the error itself, when it is none of the wire (a fault of ours, a cancellation).
    """
    match error:
        case WireFailure():
            return error
        case BandwatchError():
            return WireFailure(FailureKind.LOCAL, str(error))
        case httpcore2.RemoteProtocolError() | httpx2.RemoteProtocolError():
            return WireFailure(FailureKind.PROTOCOL, "the answer is not HTTP, or it broke off in the middle")
        case httpcore2.LocalProtocolError() | httpx2.LocalProtocolError() | httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return WireFailure(FailureKind.LOCAL, "the request could not be written; check base URL, headers and key")
        case ssl.SSLError():
            return WireFailure(FailureKind.RESET, "TLS broke in the middle of the stream")
        case ConnectionError() | OSError() | httpcore2.NetworkError() | asyncio.IncompleteReadError():
            return WireFailure(FailureKind.RESET, "the connection was reset")
        case _:
            raise error
