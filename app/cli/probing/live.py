"""A line that lives while a stream runs, drawn ten times a second on a terminal, and nowhere else."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app.clock import Clock
from app.probe.tape import Tape
from app.units import format_duration

PERIOD_S = 0.1
CLEAR = "\r\x1b[2K"


@dataclass(slots=True)
class Live:
    """Looks at the tape of the call under way. Costs the measurement nothing: it reads two counters a frame."""

    clock: Clock
    wanted: bool
    prefix: str = ""
    _tape: Tape | None = None
    _began: int = 0

    def watch(self, tape: Tape) -> None:
        """A call begins."""
        self._tape, self._began = tape, self.clock.monotonic_ns()

    def words(self) -> str:
        """What the call is doing now."""
        tape = self._tape
        if tape is None:
            return "starting"
        elapsed = format_duration((self.clock.monotonic_ns() - self._began) / 1e9)
        if tape.request_sent is None:
            return f"connecting, {elapsed}"
        if not tape.stamps:
            return f"waiting for the first byte, {elapsed}"
        return f"streaming, {elapsed}, {len(tape.stamps)} reads, {tape.size / 1e3:.1f} kB"

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Draw until the block ends, and leave a clean line."""
        if not self.wanted:
            yield
            return
        drawing = asyncio.create_task(self._draw())
        try:
            yield
        finally:
            drawing.cancel()
            await asyncio.gather(drawing, return_exceptions=True)
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    async def _draw(self) -> None:
        while True:
            sys.stderr.write(f"{CLEAR}  {self.prefix}{self.words()}")
            sys.stderr.flush()
            await asyncio.sleep(PERIOD_S)
