"""The API and the pages, under uvicorn, on a socket that is already open."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import uvicorn
from fastapi import FastAPI

from app.api.app import create_app
from app.api.services import Services
from app.bootstrap.core import Core
from app.bootstrap.roles import ask_for_probe
from app.metrics.snapshot import Build
from app.targets.model import Target
from app.web.app import add_pages, error_page
from app.web.site import Site


class _Server(uvicorn.Server):
    """Leaves signals to the service."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_api(core: Core, door: socket.socket, *, schedules: bool = False) -> None:
    """Serve until the core is told to stop."""
    app = application(core, schedules=schedules)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=5,
        ws="none",
    )
    server = _Server(config)

    async def end() -> None:
        await core.stop.wait()
        server.should_exit = True

    import asyncio

    async with asyncio.TaskGroup() as group:
        ending = group.create_task(end())
        await server.serve(sockets=[door])
        ending.cancel()


def application(core: Core, *, schedules: bool = False) -> FastAPI:
    """The API with its pages."""
    site = Site(
        database=core.database,
        clock=core.clock,
        config=lambda: core.holder.current,
        catalog=core.catalog,
        version=installed_version(),
    )
    app = create_app(services_of(core, schedules=schedules), error_page=partial(error_page, site))
    add_pages(app, site)
    return app


def services_of(core: Core, *, schedules: bool = False) -> Services:
    """What the API is made of."""

    async def trigger(target: Target, location: str, at: object) -> None:
        await ask_for_probe(core, target, location, at)  # type: ignore[arg-type]  # a datetime

    return Services(
        database=core.database,
        clock=core.clock,
        config=lambda: core.holder.current,
        reload=core.follow_config,
        trigger_probe=trigger,
        build=Build(version=installed_version(), revision=os.environ.get("BANDWATCH_REVISION", "unknown")),
        catalog=core.catalog,
        exposed=not is_loopback(core.settings.host),
        public_url=core.settings.public_url,
        config_loaded=lambda: core.holder.loaded,
        schedules=schedules,
        stopping=core.stop.is_set,
    )


def installed_version() -> str:
    """The version of the installed distribution."""
    try:
        return version("bandwatch")
    except PackageNotFoundError:
        return "0+source"


def is_loopback(host: str) -> bool:
    """Is it an address that only this machine reaches?"""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
