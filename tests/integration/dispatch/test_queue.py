"""The job queue on a real Postgres: each tick handed to one worker, people first, and no job stuck."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
import pytest
from pgqueuer.ports.repository import EntrypointExecutionParameter
from pgqueuer.types import QueueEntrypoint, QueueManagerId

from app.dispatch.queue import HEARTBEAT_S, Queue, entrypoint
from app.dispatch.tick import Tick
from app.storage.database import raw_dsn
from tests.support.runs import NOW


def tick(number: int = 0, *, asked: bool = False, target: str = "p/m") -> Tick:
    return Tick(target=target, location="default", due_at=NOW + timedelta(seconds=number), asked=asked)


def on(dsn: str, scenario: Callable[[asyncpg.Pool], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncpg.create_pool(raw_dsn(dsn), min_size=1, max_size=6) as pool, asyncio.timeout(60):
            await scenario(pool)

    asyncio.run(main())


async def served(
    pool: asyncpg.Pool, handle: Callable[[Tick], Awaitable[object]], until: asyncio.Event, limit: int = 10
) -> None:
    stop = asyncio.Event()
    worker = asyncio.create_task(
        Queue(pool=pool).serve(handle, location="default", limits=lambda: {"p": limit}, stop=stop, capacity=20)
    )
    await until.wait()
    stop.set()
    await worker


def test_a_tick_is_queued_once_however_often_it_is_offered(dsn: str) -> None:
    async def scenario(pool: asyncpg.Pool) -> None:
        queue = Queue(pool=pool)
        assert await queue.enqueue([(tick(), "p"), (tick(1), "p")], NOW) == 2
        assert await queue.enqueue([(tick(), "p"), (tick(2), "p")], NOW) == 1
        assert await queue.enqueue([], NOW) == 0

    on(dsn, scenario)


def test_every_tick_is_handled_once_and_no_job_is_left(dsn: str) -> None:
    async def scenario(pool: asyncpg.Pool) -> None:
        seen: list[Tick] = []
        done = asyncio.Event()

        async def handle(each: Tick) -> None:
            seen.append(each)
            if len(seen) == 12:
                done.set()

        ticks = [tick(n) for n in range(12)]
        await Queue(pool=pool).enqueue([(each, "p") for each in ticks], NOW + timedelta(seconds=60))
        await served(pool, handle, done)
        assert sorted(each.due_at for each in seen) == [each.due_at for each in ticks]
        assert await pool.fetchval("SELECT count(*) FROM pgqueuer") == 0

    on(dsn, scenario)


def test_a_person_who_waits_comes_before_the_grid(dsn: str) -> None:
    async def scenario(pool: asyncpg.Pool) -> None:
        seen: list[bool] = []
        done = asyncio.Event()

        async def handle(each: Tick) -> None:
            seen.append(each.asked)
            if len(seen) == 13:
                done.set()

        later = NOW + timedelta(seconds=60)
        await Queue(pool=pool).enqueue([(tick(n), "p") for n in range(12)], later)
        async with pool.acquire() as connection:
            await Queue(connection=connection).enqueue([(tick(30, asked=True), "p")], later)
        await served(pool, handle, done, limit=1)
        assert seen.index(True) == 0

    on(dsn, scenario)


def test_a_handler_that_raises_and_a_job_of_another_kind_leave_the_others_alone(dsn: str) -> None:
    async def scenario(pool: asyncpg.Pool) -> None:
        seen: list[str] = []
        done = asyncio.Event()

        async def handle(each: Tick) -> None:
            seen.append(each.target)
            if each.target == "bad":
                raise RuntimeError("this one")
            if len(seen) >= 3:
                done.set()

        queue = Queue(pool=pool)
        later = NOW + timedelta(seconds=60)
        await queue.enqueue([(tick(target="bad"), "p"), (tick(1), "p"), (tick(2), "p")], later)
        await queue._queries.enqueue([entrypoint("default", "p")], [b"not ours"], [0])
        await served(pool, handle, done, limit=1)
        assert sorted(seen) == ["bad", "p/m", "p/m"]

    on(dsn, scenario)


def test_a_queue_over_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="a pool or a connection"):
        Queue()


def test_what_a_queue_left_when_it_died_its_successor_takes_at_once_and_no_other_before_the_heartbeat(dsn: str) -> None:
    async def scenario(pool: asyncpg.Pool) -> None:
        later = NOW + timedelta(seconds=60)
        await Queue(pool=pool).enqueue([(tick(), "p"), (tick(1), "p")], later)
        dead, other = Queue(pool=pool), Queue(pool=pool)

        async def take(queue: Queue) -> int:
            jobs = await queue._queries.dequeue(
                batch_size=1,
                entrypoints={QueueEntrypoint(entrypoint("default", "p")): EntrypointExecutionParameter(concurrency_limit=5)},
                queue_manager_id=QueueManagerId(queue.name),
                global_concurrency_limit=None,
                heartbeat_timeout=timedelta(seconds=3600),
            )
            return len(jobs)

        assert [await take(dead), await take(other)] == [1, 1]
        seen: list[Tick] = []
        done = asyncio.Event()

        async def handle(each: Tick) -> None:
            seen.append(each)
            done.set()

        async with asyncio.timeout(HEARTBEAT_S * 0.8):
            stop = asyncio.Event()
            successor = Queue(pool=pool, name=dead.name)
            serving = asyncio.create_task(
                successor.serve(handle, location="default", limits=lambda: {"p": 5}, stop=stop, capacity=20)
            )
            await done.wait()
            stop.set()
            await serving
        assert seen == [tick()]
        assert await pool.fetchval("SELECT queue_manager_id FROM pgqueuer") == other.name

    on(dsn, scenario)
