"""Blocking calls that may hang: each in a daemon thread of its own, so that none takes a place that another needs.

The event loop's own threads are six on two cores, and name resolution runs there; a few hanging calls would stop it for
everybody. A daemon thread that never returns does not keep the process from ending either.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """What the function returns or raises. When the caller gives up waiting, the thread goes on and is forgotten."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]  # T may be None itself

    def work() -> None:
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - it goes to who waits
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, daemon=True, name="bandwatch-blocking").start()
    return await answer
