"""Rollups on a real Postgres: they say what the runs say, whatever comes late, dies half-way or is done twice."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from sqlalchemy import text

from app.clock import FakeClock
from app.measurement.model import Outcome
from app.storage import rollups
from app.storage.database import Database
from app.storage.ledger import Ledger
from app.storage.partitions import create
from app.storage.queries.figures import Metric, Stat
from app.storage.queries.series import RAW_FOR, Point, Span, Wanted, raw_series, rollup_series, series
from app.storage.queries.session import reading
from app.storage.rollups import Rollup, read_rollups, roll_back, roll_up
from app.storage.upkeep import upkeep
from app.targets.model import Retention, Thresholds
from tests.support.runs import decide, run, target

START = datetime(2026, 3, 2, 22, 0, tzinfo=UTC)
KEPT = Retention(runs_s=400 * 365 * 86400.0)


def on(dsn: str, scenario: Callable[[Ledger, FakeClock], Awaitable[None]]) -> None:
    async def main() -> None:
        database, clock = Database(dsn=dsn), FakeClock(wall=START)
        for day in range(-1, 3):
            await create(database, (START + timedelta(days=day)).date())
        try:
            await scenario(Ledger(database=database, clock=clock, thresholds=Thresholds), clock)
        finally:
            await database.close()

    asyncio.run(main())


async def store(ledger: Ledger, minutes: range, *, name: str = "p/m", every_fifth: Outcome = Outcome.PROVIDER_ERROR) -> None:
    rng = Random(1)
    for minute in minutes:
        outcome = every_fifth if minute % 5 == 4 else Outcome.OK
        made = run(START + timedelta(minutes=minute), outcome=outcome, tps=100.0 * (0.5 + rng.random()), name=name)
        await ledger.record(made, target=target(name), decide=decide)


async def at_level(ledger: Ledger, step_s: int) -> list[Rollup]:
    async with ledger.database.read() as connection:
        return await read_rollups(connection, step_s=step_s, since=START - timedelta(days=9), until=START + timedelta(days=9))


async def agrees(ledger: Ledger, *, until: datetime, name: str = "p/m") -> None:
    """Counts are exact and percentiles within 2 %, for every metric and step."""
    async with reading(ledger.database) as session:
        reached = (await session.connection.execute(text("SELECT until FROM rollup_marks WHERE step_s = 300"))).scalar_one()
        for step_s in (300.0, 900.0, 3600.0, 10800.0, 86400.0):
            since = rollups.floor_to(START, int(step_s))
            span = Span(since=since, until=until, step_s=step_s)
            for stat in (Stat.COUNT, Stat.MEAN, Stat.P50):
                for metric in (Metric.TPS, Metric.TTFT):
                    wanted = Wanted(target=name, metric=metric, stat=stat)
                    raw = await raw_series(session, target=name, metric=metric, stat=stat, span=span)
                    rolled = await rollup_series(session, wanted, span, reached=reached)
                    assert [(p.at, p.n) for p in rolled] == [(p.at, p.n) for p in raw]
                    told = [None if p.value is None else pytest.approx(p.value, rel=0.021) for p in raw]
                    assert [p.value for p in rolled] == told


def test_rollups_say_what_the_runs_say_in_every_step_and_up_to_now(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        await store(ledger, range(200))
        clock.advance(200 * 60.0)
        assert await roll_up(ledger.database, retention=KEPT, now=clock.now()) == 39
        await agrees(ledger, until=clock.now())
        day = await at_level(ledger, 86400)
        assert [sum(each.outcomes.values()) for each in day] == [120, 75]  # midnight lies between; the last minutes are not due
        assert day[0].outcomes == {"ok": 96, "provider_error": 24}

    on(dsn, scenario)


def test_done_twice_or_by_two_at_once_changes_nothing(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        await store(ledger, range(60))
        clock.advance(3600.0)
        await asyncio.gather(*(roll_up(ledger.database, retention=KEPT, now=clock.now()) for _ in range(4)))
        first = [await at_level(ledger, step_s) for step_s in rollups.STEPS_S]
        assert await roll_up(ledger.database, retention=KEPT, now=clock.now()) == 0
        async with ledger.database.write() as connection:
            await roll_back(connection, START)
        assert await roll_up(ledger.database, retention=KEPT, now=clock.now()) == 11
        assert [await at_level(ledger, step_s) for step_s in rollups.STEPS_S] == first

    on(dsn, scenario)


def test_a_result_that_comes_late_is_in_every_level_once(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        await store(ledger, range(0, 180, 2))
        clock.advance(180 * 60.0)
        await roll_up(ledger.database, retention=KEPT, now=clock.now())
        await store(ledger, range(1, 180, 2))
        await store(ledger, range(1, 180, 2))  # told twice, stored once
        assert await roll_up(ledger.database, retention=KEPT, now=clock.now()) > 0
        assert await roll_up(ledger.database, retention=KEPT, now=clock.now()) == 0
        await agrees(ledger, until=clock.now())

    on(dsn, scenario)


def test_a_job_that_dies_leaves_no_hole_and_the_next_one_goes_on(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        await store(ledger, range(300))
        clock.advance(300 * 60.0)
        whole, calls = rollups._set_marks, 0

        async def dying(connection: object, until: datetime) -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise ZeroDivisionError
            await whole(connection, until)  # type: ignore[arg-type]

        monkeypatch.setattr(rollups, "_set_marks", dying)
        with pytest.raises(ZeroDivisionError):
            await roll_up(ledger.database, retention=KEPT, now=clock.now())
        await roll_up(ledger.database, retention=KEPT, now=clock.now())
        await agrees(ledger, until=clock.now())

    on(dsn, scenario)


def test_after_a_clock_set_back_the_repeated_time_is_rolled_up_again(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        await store(ledger, range(120))
        clock.advance(120 * 60.0)
        await roll_up(ledger.database, retention=KEPT, now=clock.now())
        clock.step(-3600.0)
        async with ledger.database.write() as connection:
            await roll_back(connection, clock.now())
        again = START + timedelta(minutes=60, milliseconds=1)
        for minute in range(60):
            await ledger.record(run(again + timedelta(minutes=minute)), target=target(), decide=decide)
        clock.advance(3600.0)
        await roll_up(ledger.database, retention=KEPT, now=clock.now())
        await agrees(ledger, until=clock.now())

    on(dsn, scenario)


def test_a_day_whose_runs_are_dropped_keeps_its_rollups(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        await store(ledger, range(110))
        clock.advance(5 * 86400.0)
        short = Retention(runs_s=2 * 86400.0)
        await roll_up(ledger.database, retention=KEPT, now=clock.now())
        before = [await at_level(ledger, step_s) for step_s in rollups.STEPS_S]
        kept = await upkeep(ledger.database, retention=short, now=clock.now())
        assert START.date() in kept.dropped
        async with ledger.database.write() as connection:
            await roll_back(connection, START)
            await rollups.list_late(connection, START)
        await upkeep(ledger.database, retention=short, now=clock.now())
        assert [await at_level(ledger, step_s) for step_s in rollups.STEPS_S] == before
        async with reading(ledger.database) as session:
            span = Span(since=START, until=START + timedelta(hours=2), step_s=3600.0)
            found = await series(session, target="p/m", metric=Metric.TPS, stat=Stat.COUNT, span=span)
        assert (found.source, sum(point.n for point in found.points)) == ("rollups", 110)

    on(dsn, scenario)


def test_each_level_is_kept_as_long_as_its_retention_says(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        await store(ledger, range(10))
        clock.advance(4 * 86400.0)
        await roll_up(ledger.database, retention=KEPT, now=clock.now())
        short = Retention(runs_s=KEPT.runs_s, rollup_5m_s=2 * 86400.0, rollup_1h_s=3 * 86400.0, rollup_1d_s=9 * 86400.0)
        await upkeep(ledger.database, retention=short, now=clock.now())
        assert [len(await at_level(ledger, step_s)) for step_s in rollups.STEPS_S] == [0, 0, 1]

    on(dsn, scenario)


def test_short_spans_and_odd_steps_are_computed_from_runs(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        await store(ledger, range(30))
        clock.advance(3600.0)
        end = clock.now()

        async def source(length: timedelta, step_s: float) -> str:
            async with reading(ledger.database) as session:
                span = Span(since=end - length, until=end, step_s=step_s)
                return (await series(session, target="p/m", metric=Metric.TPS, stat=Stat.P50, span=span)).source

        assert await source(RAW_FOR * 2, 3600.0) == "runs"  # nothing is rolled up yet
        await roll_up(ledger.database, retention=KEPT, now=end)
        assert await source(timedelta(hours=1), 300.0) == "runs"
        assert await source(RAW_FOR * 2, 3601.0) == "runs"
        assert await source(RAW_FOR * 2, 3600.0) == "rollups"

    on(dsn, scenario)


def test_a_location_alone_and_all_together(dsn: str) -> None:
    async def scenario(ledger: Ledger, clock: FakeClock) -> None:
        await store(ledger, range(20))
        clock.advance(86400.0)
        await roll_up(ledger.database, retention=KEPT, now=clock.now())

        async def points(location: str | None) -> tuple[Point, ...]:
            async with reading(ledger.database) as session:
                span = Span(since=START - timedelta(days=1), until=clock.now(), step_s=3600.0)
                found = await series(session, target="p/m", metric=Metric.TPS, stat=Stat.COUNT, span=span, location=location)
            return found.points

        assert [point.n for point in await points(None)] == [20]
        assert await points("default") == await points(None)
        assert await points("elsewhere") == ()

    on(dsn, scenario)
