"""One scheduler at a time, on a real Postgres."""

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from app.dispatch.election import LOST, Election
from app.errors import UnavailableError
from app.storage.database import raw_dsn


def on(dsn: str, scenario: Callable[[Callable[[], Awaitable[asyncpg.Connection]]], Awaitable[None]]) -> None:
    asyncio.run(scenario(lambda: asyncpg.connect(raw_dsn(dsn))))


def test_one_of_two_is_elected_and_the_other_when_the_first_dies(dsn: str) -> None:
    async def scenario(connect: Callable[[], Awaitable[asyncpg.Connection]]) -> None:
        first, second = Election(connect=connect), Election(connect=connect)
        assert await first.elected()
        assert not await second.elected()
        assert await first.elected()
        assert first._connection is not None
        first._connection.terminate()  # as when its process is killed
        async with asyncio.timeout(10):
            while not await second.elected():
                await asyncio.sleep(0.05)
        assert not await first.elected()
        await second.resign()
        await first.resign()

    on(dsn, scenario)


@pytest.mark.parametrize("error", [ConnectionRefusedError("away"), UnavailableError("away"), TimeoutError()])
def test_a_database_that_is_away_elects_nobody_and_raises_nothing(error: Exception) -> None:
    async def refused() -> asyncpg.Connection:
        raise error

    assert not asyncio.run(Election(connect=refused).elected())


def test_an_elected_one_that_is_frozen_keeps_nobody_out_for_long(dsn: str) -> None:
    async def scenario(connect: Callable[[], Awaitable[asyncpg.Connection]]) -> None:
        frozen, other, admin = Election(connect=connect), Election(connect=connect), await connect()
        await admin.execute("INSERT INTO schedule_mark (at, keys) VALUES (now(), '{}')")
        assert await frozen.elected()
        assert not await other.elected()
        await admin.execute("UPDATE schedule_mark SET saved_at = now() - interval '26 s'")
        async with asyncio.timeout(10):
            while not await other.elected():
                await asyncio.sleep(0.05)
        await admin.execute("UPDATE schedule_mark SET saved_at = now()")
        assert not await frozen.elected()
        assert await other.elected()
        await other.resign()
        await frozen.resign()
        await admin.close()

    on(dsn, scenario)


def test_a_session_that_the_server_ended_is_noticed_and_made_anew(dsn: str) -> None:
    async def scenario(connect: Callable[[], Awaitable[asyncpg.Connection]]) -> None:
        election = Election(connect=connect)
        assert await election.elected()

        def session() -> int | None:
            return None if election._connection is None else election._connection.get_server_pid()

        pid = session()
        other = await connect()
        await other.execute("SELECT pg_terminate_backend($1)", pid)
        async with asyncio.timeout(10):
            while not (await election.elected() and session() != pid):
                await asyncio.sleep(0.05)
        await election.resign()
        await other.close()

    on(dsn, scenario)


def test_one_that_comes_back_ends_the_session_that_the_network_took_from_it(dsn: str) -> None:
    """The server still holds the lock for it: nobody would be elected until that session counts as silent."""

    async def scenario(connect: Callable[[], Awaitable[asyncpg.Connection]]) -> None:
        held: list[asyncpg.Connection] = []

        async def kept() -> asyncpg.Connection:
            held.append(await connect())
            return held[-1]

        election, admin = Election(connect=kept), await connect()
        await admin.execute("INSERT INTO schedule_mark (at, keys, saved_at) VALUES (now(), '{}', now())")
        assert await election.elected()
        election._connection, election._held = None, False  # lost, and the server does not know
        async with asyncio.timeout(10):
            while not await election.elected():
                await asyncio.sleep(0.05)
        await asyncio.sleep(0)
        with pytest.raises(LOST):
            await held[0].execute("SELECT 1")
        await election.resign()
        await admin.close()

    on(dsn, scenario)
