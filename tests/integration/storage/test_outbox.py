"""The outbox on a real Postgres: nothing is lost, nothing overtakes, nobody gets what another holds."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from app.storage.database import Database
from app.storage.outbox import Outbox
from app.verdict.outbox import Announcement, Attempt
from tests.support.runs import NOW

YES = Attempt(at=NOW, status=200, latency_s=0.01, response="ok")
NO = Attempt(at=NOW, status=500, latency_s=0.01, response="no")


def message(number: int, *, incident: str | None = "i1", channel: str = "ops") -> Announcement:
    return Announcement(
        id=f"m{number}", channel=channel, type="incident.opened", body={"n": number}, incident_id=incident, created_at=NOW
    )


def on(dsn: str, scenario: Callable[[Outbox], Awaitable[None]]) -> None:
    async def main() -> None:
        database = Database(dsn=dsn)
        try:
            await scenario(Outbox(database=database))
        finally:
            await database.close()

    asyncio.run(main())


async def ids(outbox: Outbox, *, owner: str = "c1", after_s: float = 0.0) -> list[str]:
    leased = await outbox.lease(owner=owner, now=NOW + timedelta(seconds=after_s), limit=10, lease_s=30)
    return [each.announcement.id for each in leased]


def test_of_one_incident_and_channel_only_the_oldest_pending_is_given_out(dsn: str) -> None:
    async def scenario(outbox: Outbox) -> None:
        await outbox.put([message(1), message(2), message(3, incident="i2"), message(4, channel="am")])
        assert await ids(outbox) == ["m1", "m3", "m4"]
        assert await ids(outbox, owner="c2") == []
        await outbox.delivered("m1", YES)
        assert await ids(outbox, owner="c2") == ["m2"]

    on(dsn, scenario)


def test_a_courier_that_died_loses_its_lease_and_the_id_stays_the_same(dsn: str) -> None:
    async def scenario(outbox: Outbox) -> None:
        await outbox.put([message(1)])
        assert await ids(outbox) == ["m1"]
        assert await ids(outbox, owner="c2", after_s=31) == ["m1"]

    on(dsn, scenario)


def test_a_retry_waits_and_a_dead_letter_can_be_replayed(dsn: str) -> None:
    async def scenario(outbox: Outbox) -> None:
        await outbox.put([message(1)])
        await ids(outbox)
        await outbox.retry("m1", NOW + timedelta(seconds=60), NO)
        assert await ids(outbox, after_s=59) == []
        assert await ids(outbox, after_s=60) == ["m1"]
        await outbox.dead("m1", NO)
        assert (await outbox.oldest_pending())[1] == 1
        assert await outbox.replay("m1", now=NOW)
        assert not await outbox.replay("nobody", now=NOW)
        assert await ids(outbox) == ["m1"]

    on(dsn, scenario)


def test_two_couriers_at_once_never_get_the_same(dsn: str) -> None:
    async def scenario(outbox: Outbox) -> None:
        await outbox.put([message(n, incident=None) for n in range(40)])
        batches = await asyncio.gather(*(ids(outbox, owner=f"c{n}") for n in range(8)))
        taken = [each for batch in batches for each in batch]
        assert len(taken) == len(set(taken))

    on(dsn, scenario)
