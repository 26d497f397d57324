"""Errors as RFC 9457 problem details. Nothing of ours leaves with them: no trace, no input, no secret."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.errors import BandwatchError, ConfigError, NotFoundError

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:bandwatch:problem:"


class FieldProblem(BaseModel):
    """One thing wrong with a request."""

    field: str
    message: str


class ProblemDetails(BaseModel):
    """What every error answers."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = Field(default_factory=list)
    near: list[str] = Field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error on its way out."""

    status: int
    slug: str
    title: str
    detail: str
    errors: tuple[tuple[str, str], ...] = ()
    near: tuple[str, ...] = ()
    headers: Mapping[str, str] | None = None

    def body(self) -> dict[str, Any]:
        """The JSON document; `errors` and `near` only where there are any."""
        document: dict[str, Any] = {
            "type": TYPE + self.slug,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            document["errors"] = [{"field": name, "message": message} for name, message in self.errors]
        if self.near:
            document["near"] = list(self.near)
        return document


ErrorPage = Callable[[Request, Problem], Response]
"""Makes a page of a problem, for people."""


def of_error(error: BandwatchError) -> Problem:
    """The problem that one of our own errors is. One whose status is 500 says no more than that."""
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR and error.status != HTTPStatus.SERVICE_UNAVAILABLE:
        return unexpected(error)
    errors: tuple[tuple[str, str], ...] = ()
    status, detail = error.status, str(error)
    if isinstance(error, ConfigError):
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        errors = tuple((problem.field, problem.message) for problem in error.problems)
        detail = f"{len(errors)} problem{'s' if len(errors) != 1 else ''} with the request"
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        log.warning("request_unavailable", error=detail)
        detail = "The database does not answer now; try again soon."
    return Problem(
        status=int(status),
        slug=error.slug,
        title=error.title,
        detail=detail,
        errors=errors,
        near=error.near if isinstance(error, NotFoundError) else (),
        headers={"Retry-After": "5"} if status == HTTPStatus.SERVICE_UNAVAILABLE else None,
    )


def of_validation(error: RequestValidationError) -> Problem:
    """The problem that a request has which does not fit its schema; its values are not repeated."""
    errors = tuple((".".join(map(str, each["loc"])), str(each["msg"])) for each in error.errors())
    return Problem(
        status=422,
        slug="invalid-request",
        title="Invalid request",
        detail=f"{len(errors)} problem{'s' if len(errors) != 1 else ''} with the request",
        errors=errors,
    )


def of_status(error: HTTPException) -> Problem:
    """The problem behind a bare status such as 404 or 405."""
    title = HTTPStatus(error.status_code).phrase
    return Problem(
        status=error.status_code,
        slug=title.lower().replace(" ", "-"),
        title=title,
        detail=str(error.detail),
        headers=error.headers,
    )


def unexpected(error: BaseException) -> Problem:
    """The problem of our own making: logged with a number, and told with no more than that number."""
    number = uuid4().hex[:12]
    log.error("request_failed", number=number, error=f"{type(error).__name__}: {error}", exc_info=error)
    return Problem(
        status=500, slug="internal", title="Internal error", detail=f"Something went wrong here; the log knows it as {number}."
    )


def respond(problem: Problem) -> Response:
    """The problem as an answer."""
    return Response(
        json.dumps(problem.body()), status_code=problem.status, media_type=MEDIA_TYPE, headers=dict(problem.headers or {})
    )


def install_handlers(app: FastAPI, *, page: ErrorPage | None = None) -> None:
    """Turn every error of a route into a problem; into a page for a browser outside of the API, where there is one."""

    def answer(request: Request, problem: Problem) -> Response:
        if page is not None and wants_page(request.scope["path"], request.headers.get("accept", "")):
            return page(request, problem)
        return respond(problem)

    @app.exception_handler(BandwatchError)
    async def ours(request: Request, error: BandwatchError) -> Response:
        return answer(request, of_error(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return answer(request, of_validation(error))

    @app.exception_handler(HTTPException)
    async def status(request: Request, error: HTTPException) -> Response:
        return answer(request, of_status(error))


def wants_page(path: str, accept: str) -> bool:
    """Would a person rather have a page? Browsers say so, and the API's paths never do."""
    return "text/html" in accept and not path.startswith(("/api/", "/metrics", "/livez", "/readyz", "/openapi"))


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of these errors, and of those that any route may answer."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    every: Iterable[int] = {400, 401, 403, 413, 422, 429, 503, *statuses}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in sorted(every)}
