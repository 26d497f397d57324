"""The watch on a real Postgres: each decision is made once, whoever else decides at the same time, and survives restarts."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import select

from app.bootstrap.watch import ABSENT_S, WELL_S, Watch
from app.clock import FakeClock
from app.storage import tables
from app.storage.database import Database
from app.storage.incidents import Incidents
from app.storage.ledger import Ledger
from app.storage.outbox import Outbox
from app.storage.processes import Processes
from app.targets.model import Channel, ChannelKind, Config, Match, Route, Silence, Target, Thresholds
from app.verdict.model import Advance, Change, ChangeKind, Incident, IncidentState, Severity, State, Trail, Verdict
from app.verdict.outbox import Decision, Past
from tests.support.runs import NOW, run, target

SLOW = Verdict(
    target="p/m", location="default", state=State.BELOW_EXPECTATION, severity=Severity.WARNING, since=NOW, checked_at=NOW,
)  # fmt: skip
OPEN = Incident(
    id="i", target="p/m", provider="p", model="m", location="default", rule="below_expectation", severity=Severity.WARNING,
    state=IncidentState.OPEN, opened_at=NOW, updated_at=NOW, channels=("ops",),
)  # fmt: skip
OPS = Channel(name="ops", kind=ChannelKind.WEBHOOK, urls=("https://ops.example/",))
CONFIG = Config(targets=(target(),), channels={"ops": OPS}, routes=(Route(channels=("ops",)),))


@dataclass
class House:
    """A database with a watch over it; `another` is the watch of a process that has just started."""

    database: Database
    clock: FakeClock = field(default_factory=lambda: FakeClock(wall=NOW))
    config: Config = CONFIG
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = self.another()

    def another(self) -> Watch:
        return Watch(
            incidents=Incidents(database=self.database),
            processes=Processes(database=self.database),
            outbox=Outbox(database=self.database),
            config=lambda: self.config,
            clock=self.clock,
            new_id=lambda: uuid4().hex,
            base_url="http://b",
        )

    async def store(self, *incidents: Incident, at: datetime = NOW, one: Target | None = None, verdict: Verdict = SLOW) -> None:
        """A run at that instant whose decision is these incidents."""

        def decide(_: Past) -> Decision:
            changes = tuple(
                Change(kind=ChangeKind.OPENED, incident=each, verdict=verdict, at=at, summary="s") for each in incidents
            )
            trail = Trail(recent=(("below_expectation", "warning"),), taken_at=at)
            return Decision(
                verdict=replace(verdict, checked_at=at), advance=Advance(trail=trail, incidents=incidents, changes=changes)
            )

        ledger = Ledger(database=self.database, clock=self.clock, thresholds=Thresholds)
        await ledger.record(run(at), target=one or target(), decide=decide)

    async def beat(self, *, location: str = "default", instance: str = "w", **stats: Any) -> None:
        await self.watch.processes.beat(
            instance=instance, role="worker", location=location, started_at=NOW, now=self.clock.now(), stats=stats
        )

    async def pass_s(self, seconds: float, *, looks: int = 1, **stats: Any) -> None:
        for _ in range(looks):
            self.clock.advance(seconds / looks)
            await self.beat(**stats)
            await self.watch.look()

    async def rows(self, *columns: Any) -> Sequence[Any]:
        async with self.database.read() as connection:
            return (await connection.execute(select(*columns).order_by(columns[0]))).all()

    async def said(self) -> list[tuple[str, str]]:
        o = tables.outbox.c
        return [(row.type.removeprefix("incident."), row.rule) for row in await self.rows(o.seq, o.type, o.body["data"]["incident"]["rule"].astext.label("rule"))]  # fmt: skip


def in_house(dsn: str, scenario: Callable[[House], Awaitable[None]]) -> None:
    async def main() -> None:
        house = House(database=Database(dsn=dsn))
        try:
            await scenario(house)
        finally:
            await house.database.close()

    asyncio.run(main())


def test_the_incident_of_a_paused_target_is_closed_with_that_reason_and_judging_begins_anew(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.store(OPEN)
        await house.pass_s(1)
        assert await house.said() == []
        house.config = replace(CONFIG, targets=(replace(target(), paused=True),))
        await house.pass_s(1, looks=3)
        assert await house.said() == [("resolved", "below_expectation")]
        i, v = tables.incidents.c, tables.verdicts.c
        ((_, state, reason),) = await house.rows(i.id, i.state, i.resolve_reason)
        assert (state, reason) == ("resolved", "target_paused")
        ((_, trail),) = await house.rows(v.target, v.trail)
        assert trail["recent"] == []
        e = tables.incident_events.c
        assert [row.kind for row in await house.rows(e.id, e.kind)] == ["opened", "resolved"]

    in_house(dsn, scenario)


def test_many_watches_at_once_close_and_open_once(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.store(OPEN)
        house.config = replace(CONFIG, targets=())
        watches = [house.another() for _ in range(6)]
        await asyncio.gather(*(each.look() for each in watches))
        assert await house.said() == [("resolved", "below_expectation")]
        house.config = CONFIG
        await house.beat(trouble="no_network")
        await asyncio.gather(*(each.look() for each in watches))
        assert await house.said() == [("resolved", "below_expectation"), ("opened", "monitor")]

    in_house(dsn, scenario)


def test_reminders_survive_restarts_and_never_come_twice(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.store(OPEN)
        for hours in (3, 5, 5, 7, 9):
            house.clock.wall = NOW + timedelta(hours=hours)
            await house.store(at=house.clock.now())
            await house.another().look()
        assert await house.said() == [("reminder", "below_expectation")] * 2  # after 5 and 9 hours

    in_house(dsn, scenario)


def test_an_acknowledged_incident_stays_acknowledged_whatever_is_decided_meanwhile(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.store(OPEN)
        async with house.database.write() as connection:
            await connection.execute(tables.incidents.update().values(acknowledged_at=NOW))
        await house.store(replace(OPEN, severity=Severity.CRITICAL), at=NOW + timedelta(minutes=1))
        house.clock.wall = NOW + timedelta(hours=9)
        await house.store(at=house.clock.now())
        await house.watch.look()
        i = tables.incidents.c
        assert await house.rows(i.severity, i.acknowledged_at) == [("critical", NOW)]
        assert await house.said() == []

    in_house(dsn, scenario)


def test_what_a_silence_held_back_is_said_once_when_it_is_over(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.store(replace(OPEN, held="silence", channels=()))
        silence = Silence(match=Match(), starts_at=NOW, ends_at=NOW + timedelta(minutes=5))
        house.config = replace(CONFIG, silences=(silence,))
        await house.pass_s(299, looks=3)
        assert await house.said() == []
        await house.pass_s(2, looks=3)
        assert await house.said() == [("opened", "below_expectation")]
        e = tables.incident_events.c
        assert [row.kind for row in await house.rows(e.id, e.kind)] == ["opened"]

    in_house(dsn, scenario)


def test_a_network_that_is_down_is_one_incident_of_the_monitor_until_it_is_well_for_a_while(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.pass_s(5, trouble="no_network")
        await house.pass_s(60, looks=12, trouble="no_network")
        house.watch = house.another()  # a restart announces nothing anew
        await house.pass_s(60, looks=12, trouble="no_network")
        assert await house.said() == [("opened", "monitor")]
        await house.pass_s(WELL_S / 2, looks=4)
        await house.pass_s(5, trouble="no_network")  # not well for long
        await house.pass_s(WELL_S - 6, looks=4)
        assert await house.said() == [("opened", "monitor")]
        await house.pass_s(WELL_S, looks=4)
        assert await house.said() == [("opened", "monitor"), ("resolved", "monitor")]

    in_house(dsn, scenario)


def test_a_stopped_worker_is_the_monitors_trouble_and_leaves_its_targets_incidents_as_they_are(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.store(OPEN)
        await house.pass_s(5)
        for _ in range(30):  # no more beats
            house.clock.advance(ABSENT_S / 10)
            await house.watch.look()
        assert await house.said() == [("opened", "monitor")]
        i = tables.incidents.c
        assert await house.rows(i.rule, i.state) == [("below_expectation", "open"), ("monitor", "open")]
        await house.pass_s(WELL_S * 2, looks=12)
        assert await house.said() == [("opened", "monitor"), ("resolved", "monitor")]

    in_house(dsn, scenario)


def test_a_location_that_nobody_watches_needs_no_worker(dsn: str) -> None:
    async def scenario(house: House) -> None:
        house.config = replace(CONFIG, targets=(replace(target(), paused=True),))
        for _ in range(10):
            house.clock.advance(ABSENT_S)
            await house.watch.look()
        assert await house.said() == []

    in_house(dsn, scenario)


def test_a_channel_that_is_disabled_is_the_monitors_trouble_until_it_is_used_again(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.watch.outbox.disable_channel("ops", "its receiver answered 410 Gone", now=NOW)
        await house.watch.outbox.disable_channel("gone", "no longer configured", now=NOW)
        await house.pass_s(10, looks=2)
        i = tables.incidents.c
        assert await house.rows(i.location, i.state) == [("channel:ops", "open")]
        ((_, summary),) = await house.rows(i.id, i.summary)
        assert summary.startswith("The monitor at channel:ops is in trouble: its receiver answered 410 Gone")
        await house.watch.outbox.enable_channel("ops")
        await house.pass_s(WELL_S * 2, looks=4)
        assert await house.said() == [("opened", "monitor"), ("resolved", "monitor")]

    in_house(dsn, scenario)
