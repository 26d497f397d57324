"""From runs to messages through the real judgement on a real Postgres: told once, to the right people, over restarts and reloads."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import select

from app.alerts.grouping import join
from app.bootstrap.judgement import Judgement
from app.catalog.load import load_catalog
from app.clock import FakeClock
from app.measurement.model import Outcome
from app.storage import tables
from app.storage.database import Database
from app.storage.ledger import Ledger
from app.storage.outbox import Outbox
from app.targets.model import Channel, ChannelKind, Config, Match, Route, Silence, Target, Thresholds
from app.verdict.outbox import Attempt
from tests.support.runs import NOW, run, target

CATALOG = load_catalog()
EVERY = timedelta(seconds=10)
THRESHOLDS = Thresholds(window_s=70.0, group_wait_s=3.0)
OPS, CHAT = (Channel(name=name, kind=ChannelKind.WEBHOOK, urls=(f"https://{name}.example/",)) for name in ("ops", "chat"))


def watched(number: int) -> Target:
    return target(f"p/m{number:02}", every_s=EVERY.total_seconds())


@dataclass
class House:
    """One process after another over one database; each round, every target is probed once and a courier looks."""

    database: Database
    config: Config
    clock: FakeClock = field(default_factory=lambda: FakeClock(wall=NOW - timedelta(hours=1)))
    delivered: list[tuple[str, str, int, datetime]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.ledger = Ledger(database=self.database, clock=self.clock, thresholds=lambda: self.config.thresholds)
        self.judgement = Judgement(
            catalog=CATALOG, config=lambda: self.config, clock=self.clock, new_id=lambda: uuid4().hex, base_url="http://b"
        )

    async def rounds(self, n: int, outcome: Outcome) -> None:
        """Each target is probed once a round, spread over it as the grid spreads them; a courier looks in between."""
        for _ in range(n):
            for number, each in enumerate(self.config.targets):
                self.clock.advance(EVERY.total_seconds() / len(self.config.targets))
                one = run(self.clock.now(), outcome=outcome, name=each.name)
                await self.ledger.record(one, target=each, decide=self.judgement.decide(each, "default", one))
                if number % 5 == 0:
                    await self.deliver()

    async def deliver(self) -> None:
        outbox, now = Outbox(database=self.database), self.clock.now()
        await outbox.merge(now=now, over=self.config.thresholds.group_over, join=join)
        for leased in await outbox.lease(owner="c", now=now, limit=1000, lease_s=30):
            message = leased.announcement
            size = message.body["data"].get("group", {"size": 1})["size"]
            self.delivered.append((message.channel, message.type.removeprefix("incident."), size, now))
            await outbox.delivered(message.id, Attempt(at=now, status=200, latency_s=0.0, response=""))

    def told(self) -> list[tuple[str, str, int]]:
        return [(channel, kind, size) for channel, kind, size, _ in self.delivered]

    async def open(self) -> int:
        async with self.database.read() as connection:
            i = tables.incidents.c
            return len((await connection.execute(select(i.id).where(i.state == "open"))).all())


def on(dsn: str, scenario: Callable[[House], Awaitable[None]], *, targets: int = 1, **changes: Any) -> None:
    known = {"channels": {"ops": OPS, "chat": CHAT}, "routes": (Route(channels=("ops",)),), "thresholds": THRESHOLDS}
    config = Config(targets=tuple(map(watched, range(targets))), **{**known, **changes})

    async def main() -> None:
        house = House(database=Database(dsn=dsn), config=config)
        try:
            await scenario(house)
        finally:
            await house.database.close()

    asyncio.run(main())


def test_thirty_targets_of_one_provider_that_goes_down_are_one_message_and_its_return_is_one_more(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.rounds(8, Outcome.OK)
        assert house.told() == []
        await house.rounds(14, Outcome.PROVIDER_ERROR)
        assert house.told() == [("ops", "opened", 30)]
        assert await house.open() == 30
        await house.rounds(24, Outcome.OK)
        assert house.told() == [("ops", "opened", 30), ("ops", "resolved", 30)]
        assert await house.open() == 0

    on(dsn, scenario, targets=30)


def test_a_restart_in_the_middle_and_a_reload_of_other_routes_announce_nothing_anew(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.rounds(8, Outcome.OK)
        await house.rounds(14, Outcome.PROVIDER_ERROR)
        assert house.told() == [("ops", "opened", 1)]
        for _ in range(3):
            house.restart()
            await house.rounds(3, Outcome.PROVIDER_ERROR)
        house.config = replace(house.config, routes=(Route(channels=("chat",)),))
        await house.rounds(3, Outcome.PROVIDER_ERROR)
        assert house.told() == [("ops", "opened", 1)]
        await house.rounds(24, Outcome.OK)
        assert house.told() == [("ops", "opened", 1), ("ops", "resolved", 1)]  # to who was told, not to the new route

    on(dsn, scenario)


def test_what_began_and_ended_within_a_silence_is_never_heard_of(dsn: str) -> None:
    silence = Silence(match=Match(provider="p"), starts_at=NOW - timedelta(days=1), ends_at=NOW + timedelta(days=1))

    async def scenario(house: House) -> None:
        await house.rounds(8, Outcome.OK)
        await house.rounds(14, Outcome.PROVIDER_ERROR)
        assert await house.open() == 1
        await house.rounds(24, Outcome.OK)
        assert await house.open() == 0
        assert house.told() == []

    on(dsn, scenario, silences=(silence,))


def test_a_network_of_our_own_that_is_down_opens_and_closes_nothing_of_a_provider(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.rounds(8, Outcome.OK)
        await house.rounds(30, Outcome.LOCAL_ERROR)
        assert (await house.open(), house.told()) == (0, [])
        await house.rounds(8, Outcome.OK)
        await house.rounds(14, Outcome.PROVIDER_ERROR)
        assert await house.open() == 1
        await house.rounds(30, Outcome.LOCAL_ERROR)
        assert await house.open() == 1
        assert house.told() == [("ops", "opened", 1)]

    on(dsn, scenario)
