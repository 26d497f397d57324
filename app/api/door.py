"""Who may come in. Everything is shut unless this file opens it.

- Keys were made: each request needs one, with the scope that it asks for.
- No key was ever made, and we listen on loopback only: reading is open to those who call us by a loopback name (so that
  a page in a browser cannot read us through a name that it points at 127.0.0.1), and not through a proxy (which may listen
  anywhere); nothing can be changed.
- No key was ever made, and we listen elsewhere: nothing but health and metrics answers.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import wants_page
from app.api.services import Services
from app.errors import ForbiddenError, UnauthorizedError
from app.storage.queries.keys import Door, look_up
from app.storage.queries.keys import Scope as KeyScope
from app.storage.queries.session import reading

EXEMPT = frozenset({"/livez", "/readyz", "/metrics"})
"""Open to everybody, always, and never limited."""
PUBLIC = frozenset({"/login", "/favicon.ico"})
"""Open once keys exist, to those who have none yet; so is everything under `/static/`."""
PURE = frozenset({"/api/v1/expectation", "/logout"})
"""Posts that change nothing."""
ADMIN = ("/api/v1/audit",)
COOKIE = "bandwatch_key"
_PROXIED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""Headers that a proxy adds: who asks is not on this machine, whatever the connection and the `Host` say."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, for the audit log, and what they may do."""

    name: str
    scope: KeyScope


ANONYMOUS = Caller(name="anonymous", scope=KeyScope.READ)


def secret_of(scope: Scope) -> str | None:
    """The secret that a request carries: `Authorization: Bearer …`, or the cookie of a page."""
    headers = Headers(scope=scope)
    kind, _, secret = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return secret.strip()
    return cookie_of(headers.get("cookie", ""))


def cookie_of(header: str) -> str | None:
    """Our cookie's value."""
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def wanted(method: str, path: str) -> KeyScope:
    """The scope that a request asks for."""
    if path.startswith(ADMIN):
        return KeyScope.ADMIN
    return KeyScope.READ if method in _SAFE or path in PURE else KeyScope.WRITE


def is_loopback(host: str) -> bool:
    """Does a `Host` header name this machine to itself?"""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Doorkeeper:
    """Lets in whom the rules let in, and notes in the request's state who that is."""

    def __init__(self, app: ASGIApp, *, services: Services) -> None:
        self._app = app
        self._services = services
        self._keyed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            UnauthorizedError: a key is needed, or this one opens nothing.
            ForbiddenError: known, but not allowed to do this.
        """
        if scope["type"] != "http" or scope["path"] in EXEMPT:
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._let_in(scope)
        except UnauthorizedError:
            accept = Headers(scope=scope).get("accept", "")
            if scope["method"] != "GET" or not wants_page(scope["path"], accept):
                raise
            await RedirectResponse(f"/login?next={quote(scope['path'], safe='/')}", status_code=303)(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)

    async def _let_in(self, scope: Scope) -> Caller:
        path, method = scope["path"], scope["method"]
        public = path in PUBLIC or path.startswith("/static/")
        if public and self._keyed:
            return ANONYMOUS
        door = await self._door(secret_of(scope))
        if not door.keyed:
            return self._unkeyed(scope, method, path)
        if public:
            return ANONYMOUS
        if door.key is None:
            raise UnauthorizedError("an API key is needed: Authorization: Bearer bw_…")
        if not door.key.scope.allows(wanted(method, path)):
            raise ForbiddenError(f"this needs a key with the scope '{wanted(method, path)}'; yours has '{door.key.scope}'")
        if method not in _SAFE:
            _same_site(scope)
        return Caller(name=door.key.name, scope=door.key.scope)

    async def _door(self, secret: str | None) -> Door:
        async with reading(self._services.database) as session:
            door = await look_up(session, secret)
        self._keyed = self._keyed or door.keyed
        return door

    def _unkeyed(self, scope: Scope, method: str, path: str) -> Caller:
        if self._services.exposed:
            raise ForbiddenError("no API key exists yet; make one on the server with: bandwatch keys create")
        headers = Headers(scope=scope)
        if not is_loopback(headers.get("host", "")) or any(name in headers for name in _PROXIED):
            raise ForbiddenError("until an API key exists, this answers only to localhost, and not through a proxy")
        if wanted(method, path) is not KeyScope.READ:
            raise ForbiddenError("read-only until an API key exists; make one on the server with: bandwatch keys create")
        return ANONYMOUS


def _same_site(scope: Scope) -> None:
    """A change that a browser sends with our cookie must come from our own page.

    Raises:
        ForbiddenError: it comes from elsewhere.
    """
    headers = Headers(scope=scope)
    if headers.get("authorization"):
        return
    origin = headers.get("origin")
    if origin is None or urlsplit(origin).netloc != headers.get("host", ""):
        raise ForbiddenError("a change must come from this site's own pages")
