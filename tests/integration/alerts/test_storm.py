"""A storm of one provider is one message to each channel, delivered once for all, and nobody else waits for it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

from app.alerts.grouping import join
from app.alerts.routing import speak
from app.storage.database import Database
from app.storage.incidents import Incidents
from app.storage.merging import AGAIN
from app.storage.outbox import Outbox
from app.targets.model import Channel, ChannelKind, Config, Route
from app.verdict.model import Change, ChangeKind, Incident, IncidentState, Severity
from app.verdict.outbox import Attempt, Leased
from tests.support.runs import NOW
from tests.support.verdicts import said

YES = Attempt(at=NOW, status=200, latency_s=0.01, response="ok")
WAIT = timedelta(seconds=30)
CONFIG = Config(
    channels={
        "ops": Channel(name="ops", kind=ChannelKind.WEBHOOK, urls=("https://ops.example/",)),
        "am": Channel(name="am", kind=ChannelKind.ALERTMANAGER, urls=("https://am.example/",)),
    },
    routes=(Route(channels=("ops", "am")),),
)


def incident(number: int, *, provider: str = "groq") -> Incident:
    return Incident(
        id=f"{provider}{number}", target=f"{provider}/m{number}", provider=provider, model="m", location="default", rule="unavailable",
        severity=Severity.CRITICAL, state=IncidentState.OPEN, opened_at=NOW, updated_at=NOW, channels=("ops", "am"),
    )  # fmt: skip


class House:
    """An outbox into which incidents speak, and the one courier that empties it."""

    def __init__(self, database: Database) -> None:
        self.outbox = Outbox(database=database)
        self.incidents = Incidents(database=database)
        self.numbers = iter(range(10_000))

    async def open(self, *incidents: Incident, after: timedelta = timedelta(0), kind: ChangeKind = ChangeKind.OPENED) -> None:
        state = IncidentState.RESOLVED if kind is ChangeKind.RESOLVED else IncidentState.OPEN
        for each in incidents:
            told = replace(each, state=state, resolved_at=NOW + after if kind is ChangeKind.RESOLVED else None)
            change = Change(kind=kind, incident=told, verdict=said("ok"), at=NOW + after, summary="s")
            await self.incidents.decide(
                target=each.target,
                location="default",
                rule=each.rule,
                decide=lambda _, change=change: speak(  # type: ignore[misc]
                    (change,), config=CONFIG, now=NOW + after, new_id=lambda: f"{next(self.numbers):05}", base_url="http://b"
                ),
            )

    async def lease(self, after: timedelta) -> list[Leased]:
        """As the courier does each second: merge, then lease."""
        await self.outbox.merge(now=NOW + after, over=4, join=join)
        return await self.outbox.lease(owner="c", now=NOW + after, limit=500, lease_s=30)

    async def deliver(self, after: timedelta, *, channel: str = "ops") -> list[tuple[str, int]]:
        """(type, how many incidents) of each message that goes to the channel then."""
        gone = []
        for leased in await self.lease(after):
            message = leased.announcement
            await self.outbox.delivered(message.id, YES)
            if message.channel == channel:
                gone.append((message.type.removeprefix("incident."), message.body["data"].get("group", {"size": 1})["size"]))
        return gone


def on(dsn: str, scenario: Callable[[House], Awaitable[None]]) -> None:
    async def main() -> None:
        database = Database(dsn=dsn)
        try:
            await scenario(House(database))
        finally:
            await database.close()

    asyncio.run(main())


def test_thirty_targets_of_one_provider_down_are_one_message_and_up_again_one_more(dsn: str) -> None:
    async def scenario(house: House) -> None:
        targets = [incident(n) for n in range(30)]
        await house.open(*targets[:10])
        await house.open(*targets[10:], after=WAIT / 2)
        assert await house.deliver(WAIT - timedelta(seconds=1)) == []
        assert await house.deliver(WAIT) == [("opened", 30)]
        assert await house.deliver(WAIT * 10) == []
        later = timedelta(hours=4)
        await house.open(*targets, after=later, kind=ChangeKind.REMINDER)
        assert await house.deliver(later + WAIT) == [("reminder", 30)]
        later *= 2
        await house.open(*targets, after=later, kind=ChangeKind.RESOLVED)
        assert await house.deliver(later + WAIT) == [("resolved", 30)]
        assert await house.deliver(later + WAIT * 100) == []

    on(dsn, scenario)


def test_few_are_told_one_by_one_and_another_provider_is_another_matter(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.open(*(incident(n) for n in range(4)), *(incident(n, provider="cerebras") for n in range(6)))
        assert sorted(await house.deliver(WAIT)) == [("opened", 1)] * 4 + [("opened", 6)]

    on(dsn, scenario)


def test_an_alertmanager_hears_each_at_once(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.open(*(incident(n) for n in range(30)))
        assert await house.deliver(timedelta(0), channel="am") == [("opened", 1)] * 30

    on(dsn, scenario)


def test_stragglers_of_a_storm_wait_and_are_one_message_more(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.open(*(incident(n) for n in range(20)))
        assert await house.deliver(WAIT) == [("opened", 20)]
        for number in range(20, 30):
            await house.open(incident(number), after=WAIT + timedelta(seconds=number))
            assert await house.deliver(WAIT + timedelta(seconds=number)) == []
        assert await house.deliver(AGAIN - timedelta(seconds=1)) == []
        assert await house.deliver(AGAIN) == [("opened", 10)]

    on(dsn, scenario)


def test_the_end_of_an_incident_waits_until_the_storm_that_told_of_it_is_delivered(dsn: str) -> None:
    async def scenario(house: House) -> None:
        targets = [incident(n) for n in range(6)]
        await house.open(*targets)
        leased = [each.announcement for each in await house.lease(WAIT)]
        (storm,) = [each for each in leased if each.channel == "ops"]
        await house.open(targets[3], after=WAIT, kind=ChangeKind.RESOLVED)
        await house.outbox.retry(storm.id, NOW + WAIT * 4, YES)
        assert await house.deliver(WAIT * 3) == []
        (again,) = [each.announcement for each in await house.lease(WAIT * 4) if each.announcement.channel == "ops"]
        assert (again.id, again.body) == (storm.id, storm.body)
        await house.outbox.delivered(storm.id, YES)
        assert await house.deliver(WAIT * 5) == [("resolved", 1)]

    on(dsn, scenario)


def test_what_became_of_a_storm_became_of_all_of_it_and_each_can_be_replayed_alone(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.open(*(incident(n) for n in range(6)))
        storm = next(each.announcement for each in await house.lease(WAIT) if each.announcement.channel == "ops")
        await house.outbox.dead(storm.id, YES)
        assert (await house.outbox.oldest_pending())[1] == 6
        member = next(f"msg_{n:05}" for n in range(12) if f"msg_{n:05}" != storm.id and n % 2 == 0)
        assert await house.outbox.replay(member, now=NOW + WAIT)
        assert await house.deliver(WAIT) == [("opened", 1)]

    on(dsn, scenario)


def test_two_couriers_that_merge_at_once_make_one_message(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.open(*(incident(n) for n in range(30)))
        batches = await asyncio.gather(*(house.lease(WAIT) for _ in range(4)))
        told = [each.announcement for batch in batches for each in batch if each.announcement.channel == "ops"]
        assert [each.body["data"]["group"]["size"] for each in told] == [30]

    on(dsn, scenario)
