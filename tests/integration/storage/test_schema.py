"""The tables that queries see are the tables that migrations make, and migrating again changes nothing."""

import asyncio
from datetime import UTC, datetime, timedelta

from sqlalchemy import inspect, text

from app.storage.database import Database
from app.storage.migrate import revisions, upgrade
from app.storage.partitions import ahead, create, days, drop_before
from app.storage.tables import metadata


def test_every_table_has_just_the_columns_that_queries_know(dsn: str) -> None:
    async def scenario() -> None:
        database = Database(dsn=dsn)
        async with database.read() as connection:
            real = await connection.run_sync(
                lambda sync: {name: {c["name"] for c in inspect(sync).get_columns(name)} for name in metadata.tables}
            )
        await database.close()
        assert real == {name: {c.name for c in table.columns} for name, table in metadata.tables.items()}

    asyncio.run(scenario())


def test_three_replicas_that_migrate_at_once_agree(dsn: str) -> None:
    async def scenario() -> None:
        replicas = [Database(dsn=dsn) for _ in range(3)]
        assert len(set(await asyncio.gather(*map(upgrade, replicas)))) == 1
        current, newest = await revisions(replicas[0])
        assert current == newest
        for each in replicas:
            await each.close()

    asyncio.run(scenario())


def test_old_days_are_dropped_and_a_week_is_ahead(dsn: str) -> None:
    async def scenario() -> None:
        now = datetime.now(UTC)
        database = Database(dsn=dsn)
        old = (now - timedelta(days=40)).date()
        await create(database, old)
        assert await drop_before(database, now - timedelta(days=30)) == [old]
        async with database.read() as connection:
            there = await days(connection)
            assert (await connection.execute(text("SELECT count(*) FROM runs"))).scalar_one() == 0
        await database.close()
        assert old not in there
        assert ahead(there, now=now) == 7

    asyncio.run(scenario())
