"""Is it alive, is it ready, what are its figures: open to everybody, never limited, never slow."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from app.api.deadline import Single
from app.api.params import Served
from app.api.problems import MEDIA_TYPE, TYPE
from app.api.scrape import Look, look, snapshot
from app.api.services import Services
from app.errors import BandwatchError
from app.metrics.exposition import render

router = APIRouter(tags=["health"])


class AliveOut(BaseModel):
    """The process answers."""

    status: str
    version: str


class Checks:
    """One look at the database at a time, whoever asks and however long it takes."""

    def __init__(self) -> None:
        self.ready: Single[str] = Single()
        self.scrape: Single[Look] = Single()


def checks_of(request: Request) -> Checks:
    """This application's."""
    found: Checks = request.app.state.checks
    return found


@router.get("/livez", summary="Does the process live?")
async def livez(served: Served) -> AliveOut:
    """200 while the process answers; says nothing of the database."""
    return AliveOut(status="ok", version=served.build.version)


@router.get("/readyz", summary="Can it serve?", responses={503: {"description": "The database is away"}})
async def readyz(served: Served, request: Request) -> Response:
    """200 when the database answers, else 503; within a second, even when the database is silent."""
    try:
        version = await checks_of(request).ready.within(served.limits.ready_s, _database(served))
    except (BandwatchError, TimeoutError, OSError):
        return _not_ready("the database does not answer")
    return JSONResponse({"status": "ok", "checks": {"database": "ok", "postgres": version}})


async def _database(served: Services) -> str:
    """The server's version, over a connection of its own: the pool's may hang in a silence that is over."""
    connection = await served.database.connect_raw()
    try:
        async with asyncio.timeout(5):
            found = await connection.fetchval("SELECT current_setting('server_version') FROM (SELECT count(*) FROM api_keys) k")
    except Exception as error:
        raise BandwatchError("the database is not ready") from error
    finally:
        connection.terminate()
    return str(found)


def _not_ready(detail: str) -> Response:
    body: dict[str, Any] = {"type": TYPE + "not-ready", "title": "Not ready", "status": 503, "detail": detail}
    return JSONResponse(body, status_code=503, media_type=MEDIA_TYPE, headers={"Retry-After": "1"})


@router.get("/metrics", summary="Prometheus metrics", response_class=Response)
async def metrics(
    served: Served,
    request: Request,
    accept: Annotated[str, Header()] = "",
    accept_encoding: Annotated[str, Header()] = "",
) -> Response:
    """The Prometheus text format or OpenMetrics; rendered off the event loop. Without the database, only our own figures."""
    try:
        state = await checks_of(request).scrape.within(served.limits.scrape_s, look(served))
    except (BandwatchError, TimeoutError, OSError):
        state = None
    made = await asyncio.to_thread(render, snapshot(served, state), accept=accept, accept_encoding=accept_encoding)
    headers = {"Content-Encoding": "gzip"} if made.gzipped else {}
    return Response(made.body, headers={**headers, "Vary": "Accept, Accept-Encoding"}, media_type=made.content_type)
