"""Is it alive, is it ready, what are its figures: open to everybody, never limited, never slow."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
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
STUCK_S = 60.0
"""The elected scheduler saves its walk every four seconds at least; another one takes over when it has not for twelve."""


class AliveOut(BaseModel):
    """The process answers."""

    status: str
    version: str


class Checks:
    """One look at the database at a time, whoever asks and however long it takes."""

    def __init__(self) -> None:
        self.ready: Single[Answer] = Single()
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
    """200 when the database answers, and where ticks are scheduled while they are finishing; else 503; within a second, even
    when the database is silent.
    """
    try:
        found = await checks_of(request).ready.within(served.limits.ready_s, _database(served))
    except (BandwatchError, TimeoutError, OSError):
        return _not_ready("the database does not answer")
    if served.schedules and found.tick_age_s is not None and found.tick_age_s > STUCK_S:
        return _not_ready(f"no tick of the schedule has finished for {found.tick_age_s:.0f} s")
    checks = {"database": "ok", "postgres": found.version, "tick_age_s": found.tick_age_s}
    return JSONResponse({"status": "ok", "checks": checks})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the database says: its version, and how long ago a scheduler last saved its walk (None: never)."""

    version: str
    tick_age_s: float | None


async def _database(served: Services) -> Answer:
    """Ask over a connection of its own: the pool's may hang in a silence that is over."""
    connection = await served.database.connect_raw()
    try:
        async with asyncio.timeout(5):
            found = await connection.fetchrow(
                "SELECT current_setting('server_version') AS version, "
                "(SELECT extract(epoch FROM now() - saved_at)::float8 FROM schedule_mark) AS age "
                "FROM (SELECT count(*) FROM api_keys) k"
            )
    except Exception as error:
        raise BandwatchError("the database is not ready") from error
    finally:
        connection.terminate()
    return Answer(version=str(found["version"]), tick_age_s=found["age"])


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
