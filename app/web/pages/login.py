"""`/login`: a key for a browser. It stays in a cookie that no script can read and no other site can send."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.storage.queries.keys import look_up
from app.web.site import Site

COOKIE = "bandwatch_key"
DAY_S = 86400


def login_pages(site: Site) -> APIRouter:
    """The form, what it sends, and the way out."""
    router = APIRouter()

    @router.get("/login", response_class=HTMLResponse)
    async def form(request: Request, next_page: Annotated[str, Query(alias="next", max_length=300)] = "/") -> HTMLResponse:
        return site.page(request, "login.html", next_page=own_path(next_page), problem="")

    @router.post("/login")
    async def enter(request: Request) -> Response:
        sent = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=10)
        secret = sent.get("key", [""])[0].strip()
        next_page = own_path(sent.get("next", ["/"])[0])
        async with site.look() as session:
            door = await look_up(session, secret)
        if door.key is None:
            return site.page(request, "login.html", status=401, next_page=next_page, problem="This key opens nothing.")
        answer = RedirectResponse(next_page, status_code=303)
        answer.set_cookie(
            COOKIE, secret, max_age=30 * DAY_S, httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
        return answer

    @router.post("/logout")
    async def leave() -> RedirectResponse:
        answer = RedirectResponse("/login", status_code=303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    return router


def own_path(path: str) -> str:
    """A path on this site; anything that could lead elsewhere becomes `/`."""
    safe = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if safe else "/"
