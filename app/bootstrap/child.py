"""A child process that never outlives its parent, and is started again when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

log = structlog.get_logger()

PULSE = "BANDWATCH_PULSE_FD"
"""Names the write end of a pipe: the child's event loop puts a byte into it every second, and a parent that looks
`silent_looks` times in a row without finding one kills the child, which is started again.
"""
PULSE_S = 1.0
LINE = "BANDWATCH_LINE"
"""A name that the children of one place in one parent have one after another: a child that bears it knows that the one before
has ended, and takes over at once what that one left.
"""
LEASH = "BANDWATCH_LEASH_FD"
"""Names the read end of a pipe that the parent holds open; its end of file tells the child that the parent is gone."""


@dataclass(slots=True, kw_only=True)
class Child:
    """One supervised `python -m …` child.

    Args:
        arguments: what follows the interpreter.
        environment: added to the parent's.
        grace_s: how long the child may drain after SIGTERM before it is killed.
        silent_looks: looks, a second apart, without a sign of life after which a child that gave one before counts as stuck.
            Looks and not time, so that a parent that was frozen itself blames nobody.
    """

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    grace_s: float = 30.0
    silent_looks: int = 60
    pulse_s: float = PULSE_S
    _process: asyncio.subprocess.Process | None = field(default=None)

    @property
    def pid(self) -> int | None:
        """The running child's process id."""
        return None if self._process is None else self._process.pid

    async def run(self) -> None:
        """Start the child and wait for its end; on cancellation, stop it: SIGTERM, the grace, SIGKILL."""
        (leash, held), (felt, pulse) = os.pipe(), os.pipe()
        os.set_blocking(felt, False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *self.arguments,
                env={**os.environ, **self.environment, LEASH: str(leash), PULSE: str(pulse)},
                pass_fds=(leash, pulse),
                start_new_session=True,
            )
        finally:
            os.close(leash)
            os.close(pulse)
        watching = asyncio.create_task(self._feel(felt, self._process))
        try:
            code = await self._process.wait()
            log.warning("child_ended", child=self.name, code=code)
        finally:
            watching.cancel()
            await self._stop()
            os.close(held)
            os.close(felt)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _feel(self, felt: int, process: asyncio.subprocess.Process) -> None:
        """Kill a child whose event loop stands still. One that never gave a sign is not expected to."""
        alive, silent = False, 0
        while silent < self.silent_looks:
            await asyncio.sleep(self.pulse_s)
            try:
                beats = len(os.read(felt, 4096))
            except BlockingIOError:
                beats = 0
            alive, silent = alive or beats > 0, 0 if beats or not alive else silent + 1
        log.error("child_stuck", child=self.name, silent_looks=silent)
        process.kill()

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


def line() -> uuid.UUID:
    """This child's line; in a process without a parent, a line of its own."""
    named = os.environ.get(LINE)
    return uuid.uuid4() if named is None else uuid.UUID(named)


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


async def show_life(*, stop: asyncio.Event) -> None:
    """Let the parent feel that the event loop goes round, until told to stop; nothing, in a process without a parent."""
    number = os.environ.get(PULSE)
    if number is None:
        await stop.wait()
        return
    os.set_blocking(int(number), False)
    while not stop.is_set():
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(int(number), b".")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PULSE_S):
                await stop.wait()
