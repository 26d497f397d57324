"""A child process that never outlives its parent, and is started again when it dies."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

log = structlog.get_logger()

LEASH = "BANDWATCH_LEASH_FD"
"""Names the read end of a pipe that the parent holds open; its end of file tells the child that the parent is gone."""


@dataclass(slots=True, kw_only=True)
class Child:
    """One supervised `python -m …` child.

    Args:
        arguments: what follows the interpreter.
        environment: added to the parent's.
        grace_s: how long the child may drain after SIGTERM before it is killed.
    """

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    grace_s: float = 30.0
    _process: asyncio.subprocess.Process | None = field(default=None)

    @property
    def pid(self) -> int | None:
        """The running child's process id."""
        return None if self._process is None else self._process.pid

    async def run(self) -> None:
        """Start the child and wait for its end; on cancellation, stop it: SIGTERM, the grace, SIGKILL."""
        leash, held = os.pipe()
        os.set_inheritable(leash, True)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *self.arguments,
                env={**os.environ, **self.environment, LEASH: str(leash)},
                pass_fds=(leash,),
                start_new_session=True,
            )
        finally:
            os.close(leash)
        try:
            code = await self._process.wait()
            log.warning("child_ended", child=self.name, code=code)
        finally:
            await self._stop()
            os.close(held)

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(self.grace_s):
                await process.wait()
        except TimeoutError:
            log.error("child_killed", child=self.name, grace_s=self.grace_s)
            process.kill()
            await process.wait()


async def parent_gone() -> None:
    """Return when the parent that holds the leash has died; never, in a process without a leash."""
    number = os.environ.get(LEASH)
    if number is None:
        await asyncio.Event().wait()
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(int(number), gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(int(number))
