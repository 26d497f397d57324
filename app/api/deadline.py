"""Wait for work, but not for ever: not even for the end of work that was told to end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Single(Generic[T]):
    """At most one piece of work of a kind at a time; who asks meanwhile waits for that one.

    A connection to a silent server may take long to notice that it was cancelled, so the work runs in a task of its own
    that this object holds, and the waiting ends on time whatever becomes of it.
    """

    _task: asyncio.Task[T] | None = field(default=None)

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work.

        Raises:
            TimeoutError: it took longer; it goes on, and the next who asks waits for its end.
        """
        if self._task is None or self._task.done() or self._task.get_loop() is not asyncio.get_running_loop():
            self._task = asyncio.get_running_loop().create_task(work)
            self._task.add_done_callback(_look_at)
        else:
            work.close()
        done, _ = await asyncio.wait({self._task}, timeout=seconds)
        if not done:
            raise TimeoutError
        return self._task.result()


def _look_at(task: asyncio.Task[Any]) -> None:
    """Fetch the error of a task for which nobody waits any more."""
    if not task.cancelled():
        task.exception()
