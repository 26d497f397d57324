"""Pages added to the application: they stand behind its shell, its limiter and its doorkeeper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.web.pages.calculator import calculator_page
from app.web.pages.compare import compare_page
from app.web.pages.incidents import incident_pages
from app.web.pages.login import login_pages
from app.web.pages.overview import overview
from app.web.pages.run import run_pages
from app.web.pages.target import target_pages
from app.web.site import STATIC, Site


class Problem(Protocol):
    """An error as the API tells it."""

    @property
    def status(self) -> int:
        """HTTP status."""
        ...

    @property
    def title(self) -> str:
        """A few words."""
        ...

    @property
    def detail(self) -> str:
        """A sentence."""
        ...

    @property
    def headers(self) -> Mapping[str, str] | None:
        """Headers of the answer."""
        ...


class Kept(StaticFiles):
    """Files whose URL changes with them: a browser may keep them for ever."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, with leave to keep it when its URL names its version."""
        response = await super().get_response(path, scope)
        versioned = b"v=" in scope["query_string"] and response.status_code in {200, 304}
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if versioned else "no-cache"
        return response


def add_pages(app: FastAPI, site: Site) -> None:
    """Add every page of the contract."""
    pages = (overview, target_pages, run_pages, incident_pages, compare_page, calculator_page, login_pages)
    for page in pages:
        app.include_router(page(site), include_in_schema=False)
    app.add_api_route("/favicon.ico", _icon, include_in_schema=False)
    app.mount("/static", Kept(directory=STATIC), name="static")
    _ = site.templates  # read now, not while a request waits


async def _icon() -> FileResponse:
    """What browsers ask for on pages that name no icon."""
    return FileResponse(STATIC / "favicon.svg", media_type="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"})


def error_page(site: Site, request: Request, problem: Problem) -> Response:
    """A problem as a page."""
    page = site.page(request, "problem.html", status=problem.status, title=problem.title, detail=problem.detail)
    for name, value in (problem.headers or {}).items():
        page.headers[name] = value
    return page
