"""A clock that was set, and ticks that were lost, on a real Postgres: judged again, delivered again, counted once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

import asyncpg
import pytest
from sqlalchemy import select, text, update

from app.clock import FakeClock
from app.dispatch.queue import Queue
from app.dispatch.tick import Tick
from app.storage import tables
from app.storage.database import Database
from app.storage.ledger import Ledger
from app.storage.outbox import Outbox
from app.storage.partitions import days
from app.storage.processes import Processes
from app.storage.schedule import ScheduleMark
from app.storage.ticks import LOST_AFTER, fold_counts, settle_lost, tick_counts
from app.targets.grid import Walk
from app.targets.model import Thresholds
from app.verdict.outbox import Announcement, Claim, Decision, Past
from tests.support.runs import NOW, decide, run, target

KEY = {"target": "p/m", "location": "default", "due_at": NOW}


def on(dsn: str, scenario: Callable[[Ledger, FakeClock], Awaitable[None]]) -> None:
    async def main() -> None:
        database, clock = Database(dsn=dsn), FakeClock(wall=NOW)
        try:
            await scenario(Ledger(database=database, clock=clock, thresholds=Thresholds), clock)
        finally:
            await database.close()

    asyncio.run(main())


async def counted(ledger: Ledger) -> dict[str, int]:
    async with ledger.database.read() as connection:
        return await tick_counts(connection)


def test_after_a_step_back_new_runs_decide_again_and_those_of_the_future_are_no_evidence(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        for minute in range(10):
            await ledger.record(run(NOW + timedelta(minutes=minute)), target=target(), decide=decide)
        clock.wall = NOW + timedelta(minutes=10)
        clock.step(-3600.0)
        pasts: list[Past] = []

        def remember(past: Past) -> Decision:
            pasts.append(past)
            return decide(past)

        first = await ledger.record(run(clock.now(), tps=50.0), target=target(), decide=remember)
        clock.advance(60.0)
        await ledger.record(run(clock.now(), tps=50.0), target=target(), decide=remember)
        assert first.decision is not None
        assert [sample.decode_tps for sample in pasts[-1].samples] == [50.0, 50.0]
        async with ledger.database.read() as connection:
            assert (await connection.execute(select(tables.verdicts.c.due_at))).scalar_one() == clock.now()

    on(dsn, scenario)


@pytest.mark.parametrize("away", [timedelta(days=30), timedelta(days=-400)])
def test_a_run_of_a_day_without_a_partition_makes_the_partition(dsn: str, away: timedelta) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        clock.wall = NOW + away
        assert (await ledger.record(run(clock.now()), target=target(), decide=decide)).stored
        assert not (await ledger.record(run(clock.now()), target=target(), decide=decide)).stored
        async with ledger.database.read() as connection:
            assert clock.now().date() in await days(connection)

    on(dsn, scenario)


def test_a_result_of_a_tick_is_counted_once_however_often_it_is_told(dsn: str) -> None:
    async def scenario(ledger: Ledger, _: FakeClock) -> None:
        assert await ledger.claim(**KEY, owner="w1") is Claim.NEW
        told = await asyncio.gather(*(ledger.finish(**KEY, result="run") for _ in range(8)))
        assert set(told) == {"run"}
        assert await ledger.finish(**KEY, result="missed") == "run"
        assert await ledger.claim(**KEY, owner="w2") is Claim.DONE
        assert await ledger.finish(**{**KEY, "target": "p/never-claimed"}, result="missed")
        for _ in range(3):
            assert await counted(ledger) == {"run": 1, "missed": 1}
            async with ledger.database.write() as connection:
                await fold_counts(connection)

    on(dsn, scenario)


def test_a_result_of_a_worker_that_was_thought_dead_is_not_stored_once_its_tick_is_missed(dsn: str) -> None:
    async def scenario(ledger: Ledger, _: FakeClock) -> None:
        await ledger.claim(**KEY, owner="frozen")
        assert await ledger.finish(**KEY, result="missed") == "missed"
        assert not (await ledger.record(run(), target=target(), decide=decide)).stored
        other = {**KEY, "target": "p/other"}
        await ledger.claim(**other, owner="frozen")
        assert (await ledger.record(run(name="p/other"), target=target("p/other"), decide=decide)).stored
        assert await ledger.finish(**other, result="missed") == "run"
        assert await counted(ledger) == {"run": 1, "missed": 1}

    on(dsn, scenario)


def test_what_became_of_a_stored_tick_stands_in_its_claim_with_the_run(dsn: str) -> None:
    async def scenario(ledger: Ledger, _: FakeClock) -> None:
        for result, each in (("late", run()), ("skipped_budget", run(name="p/spent")), ("run", run(name="p/on-time"))):
            await ledger.claim(target=each.target, location="default", due_at=NOW, owner="w")
            await ledger.record(each, target=target(each.target), decide=decide, result=result)
        assert await counted(ledger) == {"late": 1, "skipped_budget": 1, "run": 1}

    on(dsn, scenario)


def test_a_tick_of_which_nothing_was_heard_for_long_is_missed_and_one_with_a_run_is_not(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        for name in ("p/m", "p/stored", "p/fresh"):
            if name == "p/fresh":
                clock.advance(LOST_AFTER.total_seconds() + 1)
            await ledger.claim(target=name, location="default", due_at=NOW, owner="w1")
        await ledger.record(run(name="p/stored"), target=target("p/stored"), decide=decide)
        for found in (1, 0):
            async with ledger.database.write() as connection:
                assert await settle_lost(connection, now=clock.now()) == found
        assert await counted(ledger) == {"run": 1, "missed": 1}

    on(dsn, scenario)


def test_a_walk_is_remembered_whole_with_what_it_missed(dsn: str) -> None:
    async def scenario(ledger: Ledger, _: FakeClock) -> None:
        mark = ScheduleMark(database=ledger.database)
        assert await mark.load() is None
        first = Walk(at=NOW, keys=frozenset({"a", "b"}), high=NOW + timedelta(hours=1), turn=2)
        second = Walk(at=NOW - timedelta(days=1), turn=3)
        assert await mark.save(first, over=None, missed=3)
        assert await mark.load() == first
        assert not await mark.save(second, over=None, missed=3)
        assert not await mark.save(second, over=second, missed=3)
        assert await mark.load() == first
        assert await mark.save(second, over=first, missed=3)
        assert await mark.load() == second
        assert await counted(ledger) == {"missed": 6}

    on(dsn, scenario)


def test_jobs_are_queued_with_the_walk_or_not_at_all(dsn: str) -> None:
    async def scenario(ledger: Ledger, _: FakeClock) -> None:
        mark = ScheduleMark(database=ledger.database)

        async def enqueue(connection: asyncpg.Connection) -> None:
            await Queue(connection=connection).enqueue([(Tick(target="p/m", location="default", due_at=NOW), "p")], NOW)

        async def die(connection: asyncpg.Connection) -> None:
            await enqueue(connection)
            raise ZeroDivisionError

        async def jobs() -> int:
            async with ledger.database.read() as connection:
                return int((await connection.execute(text("SELECT count(*) FROM pgqueuer"))).scalar_one())

        with pytest.raises(ZeroDivisionError):
            await mark.save(Walk(at=NOW), over=None, missed=2, within=die)
        assert (await mark.load(), await jobs(), await counted(ledger)) == (None, 0, {})
        assert await mark.save(Walk(at=NOW), over=None, within=enqueue)
        assert not await mark.save(Walk(at=NOW, turn=1), over=None, within=enqueue)
        assert (await mark.load(), await jobs()) == (Walk(at=NOW), 1)

    on(dsn, scenario)


def message(at: datetime) -> Announcement:
    return Announcement(id="m", channel="ops", type="channel.test", body={}, created_at=at)


def test_a_step_back_keeps_no_announcement_no_lease_and_no_dead_process_waiting(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        outbox, processes = Outbox(database=ledger.database), Processes(database=ledger.database)
        mark = ScheduleMark(database=ledger.database)
        await outbox.put([message(NOW), replace(message(NOW), id="n", channel="two")])
        o = tables.outbox
        async with ledger.database.write() as connection:
            await connection.execute(update(o).where(o.c.id == "m").values(next_at=NOW + timedelta(seconds=5)))
            await connection.execute(
                update(o).where(o.c.id == "n").values(lease_owner="dead", leased_until=NOW + timedelta(seconds=30))
            )
        await processes.beat(instance="x", role="worker", location="default", started_at=NOW, now=NOW, stats={})
        clock.step(-7200.0)
        await mark.set_back(clock.now())
        async with ledger.database.read() as connection:
            rows = {row.id: row for row in await connection.execute(select(o))}
        assert rows["m"].next_at == clock.now()
        assert rows["n"].leased_until == clock.now() + timedelta(seconds=60)
        assert [beat.beat_at for beat in await processes.alive(now=clock.now())] == [clock.now()]
        assert await processes.alive(now=clock.now() + timedelta(minutes=1)) == ()

    on(dsn, scenario)


def test_a_step_back_of_the_databases_clock_keeps_no_job_waiting(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        raw = await ledger.database.connect_raw()
        tick = Tick(target="p/m", location="default", due_at=NOW)
        await Queue(connection=raw).enqueue([(tick, "p"), (replace(tick, target="p/picked"), "p")], NOW)
        await raw.execute(
            "UPDATE pgqueuer SET execute_after = execute_after + interval '2 h', heartbeat = heartbeat + interval '2 h'"
        )
        await raw.execute("UPDATE pgqueuer SET status = 'picked' WHERE dedupe_key LIKE 'p/picked%'")
        await ScheduleMark(database=ledger.database).set_back(clock.now())
        late = await raw.fetchval(
            "SELECT count(*) FROM pgqueuer WHERE heartbeat > now() OR (status = 'queued' AND execute_after > now() + interval '31 s')"
        )
        await raw.close()
        assert late == 0

    on(dsn, scenario)
