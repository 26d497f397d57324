"""The outer shell of every answer: security headers, bounded bodies, no odd bytes, and no error without a problem."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import Problem, of_error, of_status, respond, unexpected
from app.errors import BandwatchError

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Shell:
    """Wraps the whole application. What no handler caught ends here: logged, and answered without its text."""

    def __init__(self, app: ASGIApp, *, body_bytes: int) -> None:
        self._app = app
        self._body_bytes = body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def dressed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            problem = refuse(scope, body_bytes=self._body_bytes)
            if problem is None:
                await self._app(scope, _bounded(receive, self._body_bytes), dressed)
                return
        except BandwatchError as error:
            problem = of_error(error)
        except HTTPException as error:
            problem = of_status(error)
        except Exception as error:  # noqa: BLE001 - the last place where an error can be caught
            problem = unexpected(error)
        if not started:
            await respond(problem)(scope, receive, dressed)


def refuse(scope: Scope, *, body_bytes: int) -> Problem | None:
    """What is wrong with a request before anything looks at it.

    A NUL, or bytes that are no UTF-8, can stand in no name of ours, and the database takes neither.
    """
    raw = unquote_to_bytes(scope.get("raw_path") or scope["path"].encode()) + unquote_to_bytes(scope["query_string"])
    try:
        odd = "\x00" in raw.decode("utf-8")
    except UnicodeDecodeError:
        odd = True
    if odd:
        return _bad("the URL holds bytes that are no text")
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > body_bytes:
            return of_status(_too_large(body_bytes))
    return None


def _bad(detail: str) -> Problem:
    return Problem(status=HTTPStatus.BAD_REQUEST, slug="bad-request", title="Bad request", detail=detail)


def _too_large(limit: int) -> HTTPException:
    """An error that FastAPI lets through while it reads a body; any other it would call a bad request."""
    return HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have at most {limit} bytes")


def _bounded(receive: Receive, limit: int) -> Receive:
    """Count what arrives, whatever was declared."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_large(limit)
        return message

    return counted
