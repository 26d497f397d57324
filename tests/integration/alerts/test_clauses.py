"""The clauses of delivery, one by one, on a real outbox with receivers that say what they are told to."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import select

from app.alerts.answer import Answer
from app.alerts.courier import AT_ONCE, GIVE_UP, LONGEST_WAIT_S, UNKNOWN_FOR, Courier, wait_s
from app.clock import FakeClock
from app.errors import UnavailableError
from app.secrets import Redactor, Secrets
from app.storage import tables
from app.storage.database import Database
from app.storage.outbox import Outbox
from app.storage.queries.session import reading
from app.storage.queries.state import state_now
from app.targets.model import Channel, ChannelKind, Config
from app.verdict.outbox import Announcement, Attempt
from tests.support.runs import NOW

NO = Answer(ok=False, status=500, text="no")
YES = Answer(ok=True, status=200, text="ok")


def message(number: int, *, channel: str = "ops", incident: str | None = None, at: datetime = NOW) -> Announcement:
    return Announcement(
        id=f"m{number:03}", channel=channel, type="incident.opened", body={"n": number}, incident_id=incident or f"i{number}", created_at=at,
    )  # fmt: skip


@dataclass
class Script:
    """Answers each message with what is set for its channel; a hanging channel answers when it is let go."""

    says: dict[str, Answer | Exception] = field(default_factory=dict)
    hanging: dict[str, asyncio.Event] = field(default_factory=dict)
    sent: list[tuple[str, str]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def send(self, channel: Channel, told: Announcement, *, now: datetime) -> Answer:
        self.sent.append((channel.name, told.id))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if channel.name in self.hanging:
                await self.hanging[channel.name].wait()
            found = self.says.get(channel.name, YES)
            if isinstance(found, Exception):
                raise found
            return found
        finally:
            self.at_once -= 1

    async def resend(self, channel: Channel, bodies: Any, *, now: datetime) -> Answer:
        return YES

    async def aclose(self) -> None:
        return None


@dataclass
class Desk:
    """One outbox and a courier over it, on a clock that is wound by hand."""

    database: Database
    script: Script = field(default_factory=Script)
    clock: FakeClock = field(default_factory=lambda: FakeClock(wall=NOW))
    names: tuple[str, ...] = ("ops", "chat")

    def __post_init__(self) -> None:
        self.outbox = Outbox(database=self.database)

    def courier(self, owner: str = "c1") -> Courier:
        channels = {
            name: Channel(name=name, kind=ChannelKind.WEBHOOK, urls=(f"https://{name}.example/",)) for name in self.names
        }
        return Courier(
            outbox=self.outbox, config=lambda: Config(channels=channels), secrets=Secrets(Redactor(), environ={}), redactor=Redactor(),
            clock=self.clock, rng=Random(1), owner=owner, sender=self.script,
        )  # fmt: skip

    async def until(self, look: Callable[[], Awaitable[bool]], *, owner: str = "c1") -> None:
        """Run a courier until something is so."""
        stop = asyncio.Event()
        running = asyncio.create_task(self.courier(owner).run(stop))
        try:
            async with asyncio.timeout(90):
                while not await look():
                    await asyncio.sleep(0.01)
        finally:
            stop.set()
            for event in self.script.hanging.values():
                event.set()
            await running

    async def rows(self, *columns: Any) -> list[Any]:
        async with self.database.read() as connection:
            return list((await connection.execute(select(*columns).order_by(columns[0]))).all())

    async def states(self) -> dict[str, str]:
        return {row.id: row.state for row in await self.rows(tables.outbox.c.id, tables.outbox.c.state)}

    async def tried(self, number: int = 1, *, times: int = 1) -> timedelta:
        """Run until a message was tried so often; returns when it is next due, from the frozen now."""

        async def look() -> bool:
            rows = await self.rows(tables.outbox.c.id, tables.outbox.c.attempts, tables.outbox.c.lease_owner)
            return any((each.id, each.attempts, each.lease_owner) == (f"m{number:03}", times, None) for each in rows)

        await self.until(look)
        found = {each.id: each.next_at for each in await self.rows(tables.outbox.c.id, tables.outbox.c.next_at)}
        return found[f"m{number:03}"] - self.clock.now()


def on(dsn: str, scenario: Callable[[Desk], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        desk = Desk(database=Database(dsn=dsn), **options)
        try:
            await scenario(desk)
        finally:
            await desk.database.close()

    asyncio.run(main())


def all_are(desk: Desk, state: str, ids: Iterable[str]) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        states = await desk.states()
        return all(states[each] == state for each in ids)

    return look


def test_a_channel_that_hangs_holds_four_messages_and_delays_no_other_channel(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        desk.script.hanging["ops"] = asyncio.Event()
        await desk.outbox.put([message(n) for n in range(200)])
        await desk.outbox.put([message(n, channel="chat") for n in range(200, 230)])
        await desk.until(all_are(desk, "delivered", [f"m{n:03}" for n in range(200, 230)]))
        assert [channel for channel, _ in desk.script.sent].count("ops") == AT_ONCE
        assert desk.script.most_at_once <= 2 * AT_ONCE

    on(dsn, scenario)


def test_a_receiver_that_keeps_up_gets_all_at_once_and_each_once(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.outbox.put([message(n) for n in range(100)])
        await desk.until(all_are(desk, "delivered", [f"m{n:03}" for n in range(100)]))
        assert sorted(each for _, each in desk.script.sent) == [f"m{n:03}" for n in range(100)]

    on(dsn, scenario)


def test_waits_are_jittered_and_double_from_two_seconds_to_a_quarter_of_an_hour() -> None:
    rng = Random(7)
    for attempts, full in ((1, 2.0), (2, 4.0), (5, 32.0), (10, LONGEST_WAIT_S), (500, LONGEST_WAIT_S)):
        waits = [wait_s(attempts, rng=rng) for _ in range(500)]
        assert full / 2 <= min(waits) < full * 0.55
        assert full * 0.95 < max(waits) <= full


def test_what_failed_is_tried_again_after_its_back_off_with_the_attempt_on_record(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        desk.script.says["ops"] = NO
        await desk.outbox.put([message(1)])
        assert timedelta(seconds=1) <= await desk.tried() <= timedelta(seconds=2)
        desk.clock.advance(2)
        assert timedelta(seconds=2) <= await desk.tried(times=2) <= timedelta(seconds=4)
        a = tables.delivery_attempts.c
        rows = await desk.rows(a.id, a.outbox_id, a.status, a.latency_s, a.response)
        assert [(row.outbox_id, row.status, row.response) for row in rows] == [("m001", 500, "no")] * 2
        assert all(row.latency_s >= 0 for row in rows)

    on(dsn, scenario)


@pytest.mark.parametrize(("told", "wait"), [("120", 120.0), ("7200", 7200.0), ("9999999", GIVE_UP.total_seconds())])
def test_retry_after_is_honoured_up_to_the_end_of_the_day(dsn: str, told: str, wait: float) -> None:
    async def scenario(desk: Desk) -> None:
        desk.script.says["ops"] = Answer(ok=False, status=429, retry_after=told)
        await desk.outbox.put([message(1)])
        assert await desk.tried() == timedelta(seconds=wait)

    on(dsn, scenario)


def test_a_retry_after_that_is_short_or_nonsense_shortens_no_back_off(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        for number, told in enumerate(("0", "-5", "soon", "")):
            desk.script.says["ops"] = Answer(ok=False, status=429, retry_after=told)
            await desk.outbox.put([message(number)])
            assert await desk.tried(number) >= timedelta(seconds=1)

    on(dsn, scenario)


def test_after_a_day_and_a_last_attempt_a_message_is_dead_and_a_replay_has_a_day_of_its_own(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        desk.script.says["ops"] = NO
        await desk.outbox.put([message(1)])
        desk.clock.advance(GIVE_UP.total_seconds() - 0.5)
        assert await desk.tried() == timedelta(seconds=0.5)  # the last attempt is at the end of the day
        desk.clock.advance(0.5)
        await desk.until(all_are(desk, "dead", ["m001"]))
        assert await desk.outbox.replay("m001", now=desk.clock.now())
        desk.script.says["ops"] = YES
        await desk.until(all_are(desk, "delivered", ["m001"]))
        assert desk.script.sent == [("ops", "m001")] * 3

    on(dsn, scenario)


def test_what_was_said_to_a_channel_that_is_gone_is_given_up_after_a_while(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.outbox.put([message(1, channel="nobody")])
        await desk.tried()
        desk.clock.advance(UNKNOWN_FOR.total_seconds())
        await desk.until(all_are(desk, "dead", ["m001"]))
        assert desk.script.sent == []

    on(dsn, scenario)


def test_a_message_that_breaks_its_sender_stops_nobody(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        desk.script.says["ops"] = KeyError("a fault of ours, with a secret in its text")
        await desk.outbox.put([message(1), message(2, channel="chat")])
        await desk.until(all_are(desk, "delivered", ["m002"]))
        await desk.tried(1)
        a = tables.delivery_attempts.c
        assert ("m001", "it could not be sent: KeyError") in [
            tuple(row)[1:] for row in await desk.rows(a.id, a.outbox_id, a.response)
        ]

    on(dsn, scenario)


def test_what_a_courier_held_when_it_stopped_or_died_another_one_delivers_under_the_same_id(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.outbox.put([message(1)])
        await desk.outbox.lease(owner="dead", now=NOW, limit=10, lease_s=30)
        desk.clock.advance(31)
        await desk.until(all_are(desk, "delivered", ["m001"]), owner="c2")
        assert desk.script.sent == [("ops", "m001")]

    on(dsn, scenario)


def test_an_answer_that_comes_late_changes_nothing_that_was_delivered(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.outbox.put([message(1)])
        attempt = Attempt(at=NOW, status=None, latency_s=10.0, response="no answer within 10 s")
        await desk.outbox.delivered("m001", replace(attempt, status=200))
        await desk.outbox.dead("m001", attempt)
        await desk.outbox.retry("m001", NOW, attempt)
        assert await desk.states() == {"m001": "delivered"}
        assert await desk.outbox.lease(owner="c", now=NOW + timedelta(days=1), limit=10, lease_s=30) == []

    on(dsn, scenario)


def test_deliveries_are_counted_for_ever_although_rows_are_replayed_and_trimmed(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        desk.script.says["ops"] = NO
        await desk.outbox.put([message(1)])
        await desk.tried()
        desk.script.says["ops"] = YES
        desk.clock.advance(2)
        await desk.until(all_are(desk, "delivered", ["m001"]))
        await desk.outbox.replay("m001", now=desk.clock.now())
        await desk.until(all_are(desk, "delivered", ["m001"]))
        async with desk.database.write() as connection:
            await connection.execute(tables.outbox.delete())
        async with reading(desk.database) as session:
            state = await state_now(session, now=NOW)
        assert state.notifications == {("ops", "retried"): 1, ("ops", "delivered"): 2}

    on(dsn, scenario)


def test_a_channel_that_takes_nothing_is_known_to_fail_and_one_that_said_410_to_be_disabled(dsn: str) -> None:
    async def scenario(desk: Desk) -> None:
        desk.script.says["ops"], desk.script.says["chat"] = NO, Answer(ok=False, status=410, gone=True)
        await desk.outbox.put([message(1), message(2, channel="chat")])
        for times in (1, 2, 3):
            await desk.tried(times=times)
            assert "ops" not in await desk.outbox.channel_troubles(now=desk.clock.now())
            desk.clock.advance(10)
        desk.clock.advance(900)
        troubles = await desk.outbox.channel_troubles(now=desk.clock.now())
        assert troubles == {"ops": "channel_fails", "chat": "channel_disabled"}
        desk.script.says["ops"] = YES
        await desk.until(all_are(desk, "delivered", ["m001"]))
        await desk.outbox.enable_channel("chat")
        assert await desk.outbox.channel_troubles(now=desk.clock.now()) == {}

    on(dsn, scenario)


def test_while_the_database_is_away_the_courier_looks_again_and_goes_on_when_it_is_back(dsn: str) -> None:
    class Flaky(Outbox):
        looks = 0

        async def lease(self, **asked: Any) -> Any:
            self.looks += 1
            if self.looks < 3:
                raise UnavailableError("Postgres does not answer")
            return await super().lease(**asked)

    async def scenario(desk: Desk) -> None:
        desk.outbox = Flaky(database=desk.database)
        await desk.outbox.put([message(1)])
        await desk.until(all_are(desk, "delivered", ["m001"]))

    on(dsn, scenario)
