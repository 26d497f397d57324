"""Loops that are never stuck: what fails is logged, backed off, and begun again; what is cancelled ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from app.clock import Clock

log = structlog.get_logger()

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0
HEALTHY_AFTER_S = 10.0
"""A loop that held this long before it failed starts its back-off anew."""


async def supervise(name: str, loop: Callable[[], Awaitable[None]], *, clock: Clock, stop: asyncio.Event) -> None:
    """Run `loop` again and again until `stop` is set. A loop that returns while `stop` is not set is begun again too."""
    pause = FIRST_PAUSE_S
    while not stop.is_set():
        began = clock.monotonic_ns()
        try:
            await loop()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - the supervisor is where everything ends up
            log.error("loop_failed", loop=name, error=f"{type(error).__name__}: {error}", pause_s=pause)
        if stop.is_set():
            return
        if clock.monotonic_ns() - began > HEALTHY_AFTER_S * 1e9:
            pause = FIRST_PAUSE_S
        await pause_or_stop(pause, stop=stop)
        pause = min(pause * 2, LONGEST_PAUSE_S)


async def every(seconds: float, step: Callable[[], Awaitable[object]], *, stop: asyncio.Event) -> None:
    """Call `step` now and then every `seconds`, until `stop` is set."""
    while not stop.is_set():
        await step()
        await pause_or_stop(seconds, stop=stop)


async def pause_or_stop(seconds: float, *, stop: asyncio.Event) -> None:
    """Wait for `seconds`, or until `stop` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
