"""The service: embedded Postgres if none is named, the API in this process, the probing roles in a child of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import uuid
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from app.bootstrap.api import serve_api
from app.bootstrap.child import LEASH, LINE, Child, parent_gone, show_life
from app.bootstrap.config import DEFAULT_FILE, ConfigHolder, catalog_of
from app.bootstrap.core import Core, build_core
from app.bootstrap.health import serve_health
from app.bootstrap.logs import log_last_words, set_up_logs
from app.bootstrap.roles import PROBING, Roles
from app.bootstrap.supervise import every, supervise
from app.errors import UnavailableError
from app.secrets import Redactor
from app.settings import Settings
from app.storage.embedded import EmbeddedPostgres

log = structlog.get_logger()

Loop = Callable[[], Awaitable[None]]
ROLES = ("api", *PROBING)
CONFIG_S = 2.0
WATCH_S = 5.0
CHILD_S = 10.0
"""A child that does not end within the grace is killed after half of this; a parent gives up after all of it."""


@dataclass(slots=True, kw_only=True)
class Service:
    """What `bandwatch serve` runs.

    Args:
        settings: of the process; host and port already as the command line wants them.
        roles: which of `ROLES`; with all of them, the probing ones run in a child process, since rendering pages and probing
            in one event loop would spoil the numbers.
        make_roles: builds the probing roles of this process; tests pass roles that die at chosen points.
        program: what the child process runs, before its own options.
        config: the file; None takes `bandwatch.yaml` if it is there.
    """

    settings: Settings
    roles: Collection[str]
    config: Path | None = None
    make_roles: Callable[[Core, Collection[str]], Roles] = lambda core, names: Roles(core=core, names=names)
    program: Sequence[str] = ("-m", "app", "serve")
    _postgres: EmbeddedPostgres | None = field(default=None)
    _spawned: Child | None = field(default=None)
    _line: str = field(default_factory=lambda: str(uuid.uuid4()))
    _interrupts: int = 0

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT; a second one ends at once.

        Raises:
            ConfigError: the config file cannot be used.
            UnavailableError, ConflictError: the port is in use, or the embedded Postgres cannot start.
        """
        redactor = Redactor()
        set_up_logs(redactor, level=self.settings.log_level, style=self.settings.log_format)
        log_last_words()
        path = self._config_path()
        catalog = catalog_of(path)
        holder = ConfigHolder(catalog=catalog, path=path)
        holder.load()
        child = os.environ.get(LEASH) is not None
        async with AsyncExitStack() as stack:
            door = None if child else listen(self.settings.host, self.settings.port)
            if door is not None:
                stack.callback(door.close)
            dsn = await self._dsn(stack)
            core = build_core(self.settings, dsn=dsn, holder=holder, redactor=redactor, catalog=catalog)
            stack.push_async_callback(core.database.close)
            self._on_signals(core)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(supervise(name, loop, clock=core.clock, stop=core.stop), name=name)
                    for name, loop in self._loops(core, door, dsn, child=child)
                ]
                await core.stop.wait()
                log.info("stopping", grace_s=self.settings.grace)
                ending = asyncio.get_running_loop().call_later(self._limit_s(), _cancel, tasks)
                stack.callback(ending.cancel)

    def _limit_s(self) -> float:
        """How long stopping may take: the grace, and the time that a child needs to be killed after its own."""
        return self.settings.grace + (CHILD_S if self._spawned is not None else 0.0)

    def _loops(self, core: Core, door: socket.socket | None, dsn: str, *, child: bool) -> Sequence[tuple[str, Loop]]:
        apart = "api" in self.roles and set(self.roles) & set(PROBING)
        loops: list[tuple[str, Loop]] = [("schema", core.prepare_and_wait)]
        if self._postgres is not None:
            loops.append(("postgres", lambda: every(WATCH_S, self._watch_postgres, stop=core.stop)))
        if child:
            loops += [
                ("leash", lambda: _until_orphaned(core)),
                ("pulse", lambda: show_life(stop=core.stop)),
            ]
        if "api" in self.roles and door is not None:
            loops += [
                ("config", lambda: every(CONFIG_S, core.follow_config, stop=core.stop)),
                ("api", lambda: serve_api(core, door, schedules="scheduler" in self.roles)),
            ]
        elif door is not None:
            loops.append(("health", lambda: serve_health(core, door)))
        probing = [role for role in PROBING if role in self.roles]
        if apart:
            loops.append(("probing", lambda: self._child(dsn, probing, core)))
        elif probing:
            loops.append(("probing", self.make_roles(core, probing).run))
        return loops

    async def _child(self, dsn: str, roles: Sequence[str], core: Core) -> None:
        arguments = [*self.program]
        for role in roles:
            arguments += ["--role", role]
        if self._config_path() is not None:
            arguments += ["--config", str(self._config_path())]
        child = Child(
            name="probing",
            arguments=arguments,
            environment={
                "BANDWATCH_DATABASE_URL": dsn,
                "BANDWATCH_DATA": str(self.settings.data),
                "BANDWATCH_HOST": self.settings.host,
                "BANDWATCH_PORT": str(self.settings.port),
                "BANDWATCH_LOCATION": self.settings.location,
                "BANDWATCH_LOG_LEVEL": self.settings.log_level,
                LINE: self._line,
            },
            grace_s=self.settings.grace + CHILD_S / 2,
        )
        self._spawned = child
        running = asyncio.create_task(child.run())
        stopping = asyncio.create_task(core.stop.wait())
        try:
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (running, stopping):
                task.cancel()
            await asyncio.gather(running, stopping, return_exceptions=True)

    async def _dsn(self, stack: AsyncExitStack) -> str:
        if self.settings.database_url is not None:
            return self.settings.database_url.get_secret_value()
        self._postgres = EmbeddedPostgres(directory=self.settings.data, binaries=self.settings.postgres_bin)
        await self._postgres.start()
        stack.push_async_callback(self._postgres.stop)
        log.info("postgres_started", directory=str(self.settings.data))
        return self._postgres.url

    async def _watch_postgres(self) -> None:
        if self._postgres is not None and self._postgres.running_pid() is None:
            log.error("postgres_died", directory=str(self.settings.data))
            await self._postgres.restart()

    def _config_path(self) -> Path | None:
        path = self.config or self.settings.config
        if path is None and DEFAULT_FILE.is_file():
            return DEFAULT_FILE
        return path

    def _on_signals(self, core: Core) -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            self._interrupts += 1
            if self._interrupts > 1:
                if self._spawned is not None:
                    self._spawned.kill()
                os._exit(1)
            core.stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        loop.add_signal_handler(signal.SIGHUP, core.holder.reread)


def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """The grace is over: what still runs is cancelled; its jobs are taken over by others, or end as missed."""
    for task in tasks:
        if not task.done():
            log.warning("cancelled_after_grace", loop=task.get_name())
            task.cancel()


async def _until_orphaned(core: Core) -> None:
    """A child ends in order when its parent has died."""
    gone = asyncio.create_task(parent_gone())
    stopping = asyncio.create_task(core.stop.wait())
    await asyncio.wait({gone, stopping}, return_when=asyncio.FIRST_COMPLETED)
    for task in (gone, stopping):
        task.cancel()
    if not core.stop.is_set():
        log.error("parent_gone")
        core.stop.set()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, before anything else is started.

    Raises:
        UnavailableError: the port is in use, or the address is not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    door = socket.socket(family, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
        door.listen(512)
    except OSError as error:
        door.close()
        raise UnavailableError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another one by --port or BANDWATCH_PORT"
        ) from error
    door.setblocking(False)
    return door
