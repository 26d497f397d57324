"""PgQueuer as we use it: one entrypoint per (location, provider), so that a provider's limit holds over all machines.

A picked job whose worker died is taken over after `HEARTBEAT_S` without a heartbeat, and at once where a queue of the same
name begins anew: whoever gives names knows that the one before has ended. Enqueueing a tick that is queued or running is
skipped by its key; one that already ran is refused by the ledger. PgQueuer never trims its log: `db prune` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import structlog
from asyncpg import Connection, Pool
from pgqueuer import AsyncpgDriver, Job, Queries, QueueManager
from pgqueuer.types import QueueEntrypoint, QueueManagerId

from app.dispatch.driver import QueueDriver
from app.dispatch.tick import Tick, decode, encode

log = structlog.get_logger()

HEARTBEAT_S = 10.0
"""A job without a heartbeat for this long is taken over; running jobs beat at half of it."""
POLL_S = 5.0
"""How long a worker waits for a notification before it looks by itself."""
BATCH = 10
ON_DEMAND = 100
"""Priority of a probe that a person waits for; the grid's have 0."""

_ABANDON = """
UPDATE pgqueuer SET heartbeat = now() - interval '1 hour' WHERE queue_manager_id = $1 AND status = 'picked'
"""

Handle = Callable[[Tick], Awaitable[object]]


def entrypoint(location: str, provider: str) -> str:
    """The queue of a provider's probes at a location."""
    return f"probe/{location}/{provider}"


@dataclass(slots=True)
class Queue:
    """The job queue over an asyncpg pool, or over one connection to enqueue a single tick.

    Args:
        name: who takes jobs. Whoever serves under a name that has served before gets what that one left.
    """

    pool: Pool | None = None
    connection: Connection | None = None
    name: UUID = field(default_factory=uuid4)
    _queries: Queries = field(init=False)

    def __post_init__(self) -> None:
        if self.pool is not None:
            self._queries = Queries(QueueDriver(self.pool))
        elif self.connection is not None:
            self._queries = Queries(AsyncpgDriver(self.connection))
        else:
            raise ValueError("a queue needs a pool or a connection")

    async def enqueue(self, ticks: Sequence[tuple[Tick, str]], now: datetime) -> int:
        """Queue (tick, provider) pairs; returns how many were new.

        A tick that is queued or running is left alone; one that is due after `now` waits until then.
        """
        if not ticks:
            return 0
        ids = await self._queries.enqueue(
            [entrypoint(tick.location, provider) for tick, provider in ticks],
            [encode(tick) for tick, _ in ticks],
            execute_after=[max(tick.due_at - now, timedelta()) for tick, _ in ticks],
            priority=[ON_DEMAND if tick.asked else 0 for tick, _ in ticks],
            dedupe_key=[tick.key for tick, _ in ticks],
            on_conflict="skip",
        )
        return sum(job is not None for job in ids)

    async def serve(
        self,
        handle: Handle,
        *,
        location: str,
        limits: Callable[[], Mapping[str, int]],
        stop: asyncio.Event,
        capacity: int = 100,
    ) -> None:
        """Take jobs of a location until `stop` is set, then finish what runs.

        Args:
            handle: runs one tick; what it raises is logged, and the job ends.
            location: only this location's jobs are taken.
            limits: provider -> concurrent probes, read again every few seconds (the config may change).
            stop: when set, nothing new is taken.
            capacity: the most jobs this worker holds at once; at least twice `BATCH`.
        """
        await self._queries.driver.execute(_ABANDON, self.name)
        manager = QueueManager(self._queries)
        manager.queue_manager_id = QueueManagerId(self.name)

        async def run(job: Job) -> None:
            await _run(job, handle)

        async with asyncio.TaskGroup() as group:
            _register(manager, run, location=location, limits=limits())
            watcher = group.create_task(_follow(manager, run, location=location, limits=limits, stop=stop))
            try:
                await manager.run(
                    dequeue_timeout=timedelta(seconds=POLL_S),
                    batch_size=BATCH,
                    max_concurrent_tasks=capacity,
                    heartbeat_timeout=timedelta(seconds=HEARTBEAT_S),
                    shutdown_on_listener_failure=True,
                )
            finally:
                watcher.cancel()


async def _run(job: Job, handle: Handle) -> None:
    try:
        tick = decode(job.payload or b"")
    except ValueError as error:
        log.error("job_not_understood", job=str(job.id), error=str(error))
        return
    await handle(tick)


def _register(
    manager: QueueManager, run: Callable[[Job], Awaitable[None]], *, location: str, limits: Mapping[str, int]
) -> None:
    """Bring the manager's entrypoints up to date. A gone provider's stays, so that its last jobs end as skipped."""
    registry = manager.entrypoint_registry
    for provider, limit in limits.items():
        name = QueueEntrypoint(entrypoint(location, provider))
        if name not in registry or registry[name].parameters.concurrency_limit != limit:
            registry.pop(name, None)
            manager.entrypoint(name, concurrency_limit=limit, accepts_context=False)(run)


async def _follow(
    manager: QueueManager,
    run: Callable[[Job], Awaitable[None]],
    *,
    location: str,
    limits: Callable[[], Mapping[str, int]],
    stop: asyncio.Event,
) -> None:
    """Follow config changes, and pass `stop` on."""
    while not stop.is_set():
        _register(manager, run, location=location, limits=limits())
        try:
            async with asyncio.timeout(1.0):
                await stop.wait()
        except TimeoutError:
            continue
    manager.shutdown.set()
