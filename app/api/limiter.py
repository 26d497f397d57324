"""How much one caller may ask: a token bucket an address, and one a key. Health and metrics are exempt.

A monitor whose own health check is limited has an outage of its own making.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
from collections import OrderedDict
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.door import EXEMPT, secret_of
from app.api.problems import Problem, respond
from app.clock import Clock

REMEMBERED = 10_000
"""Buckets at once; the one that was used longest ago goes first, and its caller begins with a full one."""


@dataclass(slots=True)
class Bucket:
    """Tokens left at an instant."""

    tokens: float
    at_ns: int


@dataclass(slots=True, kw_only=True)
class Buckets:
    """One bucket a caller; all refill at the same rate."""

    per_s: float
    burst: int
    _buckets: OrderedDict[str, Bucket] = field(default_factory=OrderedDict)

    def take(self, caller: str, *, now_ns: int) -> float:
        """Take one token; returns 0, or the seconds until there is one again."""
        bucket = self._buckets.pop(caller, None) or Bucket(tokens=float(self.burst), at_ns=now_ns)
        bucket.tokens = min(float(self.burst), bucket.tokens + max(0, now_ns - bucket.at_ns) * 1e-9 * self.per_s)
        bucket.at_ns = now_ns
        self._buckets[caller] = bucket
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) / self.per_s
        bucket.tokens -= 1.0
        return 0.0


def address_of(scope: Scope) -> str:
    """The caller's address; of IPv6 the /64, which one caller has whole."""
    client = scope.get("client")
    if not client:
        return "local"
    try:
        address = ipaddress.ip_address(client[0])
    except ValueError:
        return str(client[0])
    if address.version == 6:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


class RateLimit:
    """Refuses with 429 and `Retry-After` who asks too much."""

    def __init__(self, app: ASGIApp, *, buckets: Buckets, clock: Clock) -> None:
        self._app = app
        self._buckets = buckets
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        wait_s = 0.0
        if scope["type"] == "http" and scope["path"] not in EXEMPT:
            now_ns = self._clock.monotonic_ns()
            callers = [f"address:{address_of(scope)}"]
            if (secret := secret_of(scope)) is not None:
                callers.append("key:" + hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest())
            wait_s = max(self._buckets.take(caller, now_ns=now_ns) for caller in callers)
        if wait_s <= 0.0:
            await self._app(scope, receive, send)
            return
        problem = Problem(
            status=429,
            slug="rate-limited",
            title="Too many requests",
            detail=f"At most {self._buckets.per_s:g} requests a second for long; try again in {wait_s:.1f} s.",
            headers={"Retry-After": str(math.ceil(wait_s))},
        )
        await respond(problem)(scope, receive, send)
