"""One replica: a `bandwatch serve` process with its child, started again as often as it dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.crash.replica import VARIABLE
from tests.crash.surroundings import SECRET, SECRET_VARIABLE

ROOT = Path(__file__).parents[2]
STOP_S = 60.0
"""Far longer than the grace, for a machine that has other things to do."""


@dataclass
class Replica:
    """One `serve` process with its child; started again when it is gone."""

    number: int
    folder: Path
    config: Path
    environment: dict[str, str]
    process: asyncio.subprocess.Process | None = None
    starts: int = 0

    async def keep(self) -> None:
        """Start it as often as it ends, until cancelled; then stop it in order."""
        try:
            while True:
                await self.start()
                assert self.process is not None
                await self.process.wait()
        finally:
            await self.stop()

    async def start(self, *roles: str) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.crash.replica",
                "--config",
                str(self.config),
                *(part for role in roles for part in ("--role", role)),
                cwd=ROOT,
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.starts += 1

    async def stop(self) -> None:
        process = self.process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise AssertionError(f"replica {self.number} did not stop within {STOP_S:g} s of SIGTERM") from None

    def parent(self) -> psutil.Process | None:
        if self.process is None or self.process.returncode is not None:
            return None
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid)
        return None

    def child(self) -> psutil.Process | None:
        """The process with the probing roles."""
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = self.parent()
            children = [] if parent is None else parent.children()
            return children[0] if children else None
        return None


def berth(number: int, folder: Path, dsn: str) -> Replica:
    """A replica with a home and a port of its own."""
    home = folder / f"r{number}"
    home.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    environment = {
        "BANDWATCH_DATABASE_URL": dsn,
        "BANDWATCH_DATA": str(home),
        "BANDWATCH_PORT": str(port),
        "BANDWATCH_INSTANCE": f"r{number}",
        "BANDWATCH_GRACE": "5s",
        "BANDWATCH_NEUTRAL_ADDRESSES": "off",
        "BANDWATCH_LOG_LEVEL": "warning",
        VARIABLE: str(folder / "fate"),
        SECRET_VARIABLE: SECRET,
    }
    return Replica(number=number, folder=home, config=folder / "bandwatch.yaml", environment=environment)
