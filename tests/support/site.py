"""The API with its pages, on a real socket where a browser needs one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from app.api.app import create_app
from app.api.problems import Problem
from app.web.app import add_pages, error_page
from app.web.site import Site
from tests.support.doors import House, build_house


def build_site(dsn: str, **options: Any) -> House:
    """A house whose application has the pages too."""
    house = build_house(dsn, **options)
    catalog = house.app.state.catalog
    site = Site(database=house.database, clock=house.clock, config=house.services.config, catalog=catalog, version="0.1.0")

    def page(request: Request, problem: Problem) -> Response:
        return error_page(site, request, problem)

    house.app = create_app(house.services, error_page=page)
    add_pages(house.app, site)
    return house


class Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def listening(house: House) -> AsyncIterator[str]:
    """The application on a free port of loopback; gives its URL."""
    door = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(house.app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
    server = Quiet(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[door]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{door.getsockname()[1]}"
        finally:
            server.should_exit = True
    door.close()
