"""What has brought other monitors' databases to a stop does not stop this one."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from app.clock import FakeClock
from app.dispatch.tick import Tick
from app.errors import UnavailableError
from app.storage.database import Database
from app.storage.ledger import Ledger
from app.storage.partitions import create, days, drop_before, name_of
from app.targets.model import Thresholds
from tests.support.runs import NOW, decide, run, target
from tests.support.workers import Bench


def on(dsn: str, scenario: Callable[[Database], Awaitable[None]], *, pool: int = 8) -> None:
    async def main() -> None:
        database = Database(dsn=dsn, pool=pool)
        try:
            await scenario(database)
        finally:
            await database.close()

    asyncio.run(main())


def ledger_on(database: Database) -> Ledger:
    return Ledger(database=database, clock=FakeClock(wall=NOW), thresholds=Thresholds)


def test_many_probes_at_once_hold_no_connection_while_they_wait_for_their_providers(dsn: str) -> None:
    """A session held over slow calls is the commonest way to empty a pool: 20 such tasks emptied one of 5."""

    async def scenario(database: Database) -> None:
        targets = [replace(target(), name=f"p/{number}") for number in range(50)]
        bench = Bench(targets=targets)
        bench.worker.deps = replace(
            bench.worker.deps, ledger=ledger_on(database), new_id=map("id{}".format, range(10_000)).__next__
        )
        bench.prober.gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for each in targets:
                group.create_task(bench.worker.handle(Tick(target=each.name, location="default", due_at=NOW)))
            while bench.prober.called < len(targets):
                await asyncio.sleep(0.01)
            assert database.pool_state()["in_use"] == 0
            bench.prober.gate.set()
        async with database.read() as connection:
            assert (await connection.execute(text("SELECT count(*) FROM runs"))).scalar_one() == 50

    on(dsn, scenario, pool=4)


def test_a_write_that_is_cancelled_leaves_no_poisoned_connection(dsn: str) -> None:
    async def slow(database: Database) -> None:
        async with database.write() as connection:
            await connection.execute(text("SELECT pg_sleep(30)"))

    async def scenario(database: Database) -> None:
        for _ in range(6):
            doomed = [asyncio.create_task(slow(database)) for _ in range(4)]
            await asyncio.sleep(0.1)
            for task in doomed:
                task.cancel()
            await asyncio.gather(*doomed, return_exceptions=True)
        ledger = ledger_on(database)
        results = await asyncio.gather(
            *(ledger.record(replace(run(), id=f"r{n}", target=f"p/{n}"), target=target(), decide=decide) for n in range(20))
        )
        assert all(result.stored for result in results)
        assert database.pool_state()["in_use"] == 0

    on(dsn, scenario, pool=4)


def test_a_long_reader_during_retention_makes_no_insert_wait(dsn: str) -> None:
    """A plain DETACH behind a reader of 6 s made an INSERT wait for 4 s."""

    async def scenario(database: Database) -> None:
        old = (datetime.now(UTC) - timedelta(days=40)).date()
        await create(database, old)
        ledger = ledger_on(database)
        reader = await database.connect_raw()
        await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await reader.fetchval("SELECT count(*) FROM runs")
        dropping = asyncio.create_task(drop_before(database, datetime.now(UTC) - timedelta(days=30), patience_s=50.0))
        await asyncio.sleep(0.3)
        waits = []
        for number in range(20):
            began = time.monotonic()
            one = replace(run(), id=f"r{number}", target=f"p/{number}")
            assert (await ledger.record(one, target=target(), decide=decide)).stored
            waits.append(time.monotonic() - began)
        assert not dropping.done()
        await reader.execute("COMMIT")
        await reader.close()
        await asyncio.gather(dropping, return_exceptions=True)
        assert max(waits) < 20.0
        await finish(database)
        async with database.read() as connection:
            assert old not in await days(connection)
            assert (await connection.execute(text("SELECT count(*) FROM runs"))).scalar_one() == 20

    async def finish(database: Database) -> None:
        await drop_before(database, datetime.now(UTC) - timedelta(days=30))

    on(dsn, scenario)


def test_a_retention_that_was_interrupted_halfway_is_finished_the_next_time(dsn: str) -> None:
    """A DETACH CONCURRENTLY that ran out of time leaves its partition half detached, and refuses to begin again."""

    async def scenario(database: Database) -> None:
        old = (datetime.now(UTC) - timedelta(days=40)).date()
        await create(database, old)
        reader = await database.connect_raw()
        await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await reader.fetchval("SELECT count(*) FROM runs")
        assert await drop_before(database, datetime.now(UTC) - timedelta(days=30), patience_s=0.3) == []
        await reader.execute("COMMIT")
        await reader.close()
        assert await drop_before(database, datetime.now(UTC) - timedelta(days=30)) == [old]
        assert await drop_before(database, datetime.now(UTC) - timedelta(days=30)) == []

    on(dsn, scenario)


def test_a_day_that_was_detached_by_a_process_that_died_is_dropped_all_the_same(dsn: str) -> None:
    async def scenario(database: Database) -> None:
        old = (datetime.now(UTC) - timedelta(days=40)).date()
        await create(database, old)
        async with database.write() as connection:
            await connection.execute(text(f"ALTER TABLE runs DETACH PARTITION {name_of(old)}"))
        assert await drop_before(database, datetime.now(UTC) - timedelta(days=30)) == [old]

    on(dsn, scenario)


def test_replicas_that_look_after_partitions_at_once_do_not_get_into_each_others_way(dsn: str) -> None:
    async def scenario(database: Database) -> None:
        old = [(datetime.now(UTC) - timedelta(days=number)).date() for number in (40, 41)]
        for day in old:
            await asyncio.gather(*(create(database, day) for _ in range(3)))
        dropped = await asyncio.gather(*(drop_before(database, datetime.now(UTC) - timedelta(days=30)) for _ in range(3)))
        assert sorted(day for days_ in dropped for day in days_) == sorted(old)

    on(dsn, scenario)


def test_a_long_reader_makes_no_new_day_wait_and_no_insert_behind_it(dsn: str) -> None:
    async def scenario(database: Database) -> None:
        reader = await database.connect_raw()
        await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await reader.fetchval("SELECT count(*) FROM runs")
        later = (datetime.now(UTC) + timedelta(days=30)).date()
        await create(database, later)
        assert (await ledger_on(database).record(run(), target=target(), decide=decide)).stored
        await reader.close()
        async with database.read() as connection:
            assert later in await days(connection)

    on(dsn, scenario)


def test_storing_a_run_notifies_nobody_and_fires_no_trigger(dsn: str) -> None:
    """NOTIFY takes one lock for all commits of a server; a listener that is stuck fills its queue."""

    async def scenario(database: Database) -> None:
        heard: list[object] = []
        listener = await database.connect_raw()
        channels = [row[0] for row in await listener.fetch("SELECT DISTINCT tgname FROM pg_trigger WHERE NOT tgisinternal")]
        ours = await listener.fetch(
            "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal"
        )
        assert {table for table, _ in ours} <= {"pgqueuer", "pgqueuer_schedules"}
        assert len(channels) <= len(ours)
        await listener.add_listener("ch_pgqueuer", lambda *message: heard.append(message))
        assert (await ledger_on(database).record(run(), target=target(), decide=decide)).stored
        await listener.fetchval("SELECT 1")
        assert heard == []
        await listener.close()

    on(dsn, scenario)


def test_a_transaction_that_somebody_forgot_is_ended_by_the_server_or_hinders_no_claim(dsn: str) -> None:
    """An old snapshot keeps dead rows alive; claims of ticks stay quick all the same."""

    async def scenario(database: Database) -> None:
        holder = await database.connect_raw()
        await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await holder.fetchval("SELECT count(*) FROM runs")
        ledger, waits = ledger_on(database), []
        for number in range(50):
            began = time.monotonic()
            await ledger.claim(target="p/m", location="default", due_at=NOW + timedelta(seconds=number), owner="w")
            waits.append(time.monotonic() - began)
        await holder.close()
        assert sorted(waits)[len(waits) // 2] < 2.0

    on(dsn, scenario)


def test_a_failing_statement_does_not_repeat_what_it_was_given(dsn: str) -> None:
    async def scenario(database: Database) -> None:
        with pytest.raises(Exception, match="hidden") as caught:
            async with database.write() as connection:
                await connection.execute(
                    text("SELECT CAST(:given AS integer) + no_such_column"), {"given": "Kanarienvogel0815"}
                )
        assert not isinstance(caught.value, UnavailableError)
        assert "Kanarienvogel0815" not in str(caught.value)

    on(dsn, scenario)
