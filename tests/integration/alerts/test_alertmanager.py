"""A real Alertmanager hears what stands, forgets nothing over its own restart, and groups and silences as it does for others."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.alerts.alertmanager import send_alertmanager
from app.alerts.guard import Guard
from app.alerts.resend import Resender
from app.alerts.routing import speak
from app.alerts.sending import Post
from app.alerts.transport import Clients
from app.clock import SystemClock
from app.secrets import Redactor, Secrets
from app.storage.database import Database
from app.storage.incidents import Incidents
from app.storage.outbox import Outbox
from app.targets.model import Channel, ChannelKind, Config, Route
from app.verdict.model import Change, ChangeKind, Incident, IncidentState, Severity
from app.verdict.outbox import Attempt
from tests.support.alertmanagers import Alertmanager, alertmanager, eventually
from tests.support.receivers import answer, hang, receiving
from tests.support.verdicts import said

pytestmark = pytest.mark.prometheus


def incident(target: str, *, severity: Severity = Severity.CRITICAL) -> Incident:
    now = datetime.now(UTC)
    return Incident(
        id=target.replace("/", "-"), target=target, provider=target.split("/", maxsplit=1)[0], model="m", location="default",
        rule="below_expectation", severity=severity, state=IncidentState.OPEN, opened_at=now, updated_at=now,
    )  # fmt: skip


@dataclass
class House:
    """Incidents, the outbox, and what leaves it for the channel `am`."""

    database: Database
    peers: tuple[str, ...]
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.outbox = Outbox(database=self.database)
        channel = Channel(name="am", kind=ChannelKind.ALERTMANAGER, urls=self.peers)
        self.config = Config(channels={"am": channel}, routes=(Route(channels=("am",)),))
        redactor = Redactor()
        self.post = Post(
            clients=Clients(guard=Guard(tuple)), resolve=Secrets(redactor, environ={}).resolve, clean=redactor.clean
        )
        self.resender = Resender(standing=self.outbox, config=lambda: self.config, clock=SystemClock())

    async def change(self, kind: ChangeKind, *incidents: Incident) -> None:
        """Store and announce it, and deliver it once."""
        await self.announce(kind, *incidents)
        await self.deliver()

    async def announce(self, kind: ChangeKind, *incidents: Incident) -> None:
        now = datetime.now(UTC)
        for each in incidents:
            change = Change(kind=kind, incident=each, verdict=said("ok"), at=now, summary="s")
            told = speak((change,), config=self.config, now=now, new_id=lambda: f"{next(self.numbers):05}", base_url="http://b")
            await Incidents(database=self.database).decide(
                target=each.target, location="default", rule=each.rule, decide=lambda _, told=told: told
            )  # type: ignore[misc]  # a lambda with a default

    async def deliver(self) -> None:
        now = datetime.now(UTC)
        for leased in await self.outbox.lease(owner="c", now=now, limit=100, lease_s=30):
            got = await self.post.send(self.config.channels["am"], leased.announcement, now=now)
            attempt = Attempt(at=now, status=got.status, latency_s=0.0, response=got.text)
            await (self.outbox.delivered if got.ok else self.outbox.dead)(leased.announcement.id, attempt)

    async def resolve(self, *incidents: Incident) -> None:
        now = datetime.now(UTC)
        ended = (replace(each, state=IncidentState.RESOLVED, resolved_at=now, channels=("am",)) for each in incidents)
        await self.change(ChangeKind.RESOLVED, *ended)

    async def again(self) -> None:
        await self.resender.once(self.post)


@asynccontextmanager
async def house(dsn: str, *peers: str) -> AsyncIterator[House]:
    database = Database(dsn=dsn)
    one = House(database=database, peers=peers)
    try:
        yield one
    finally:
        await one.post.aclose()
        await database.close()


def on(dsn: str, folder: Path, scenario: Callable[[House, Alertmanager], Awaitable[None]]) -> None:
    async def main() -> None:
        async with alertmanager(folder) as am, house(dsn, am.url) as one:
            await scenario(one, am)

    asyncio.run(main())


def heard(am: Alertmanager, *told: tuple[str, list[str]]) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return am.told() == list(told)

    return look


def test_over_a_restart_its_receiver_hears_one_firing_and_one_resolved(dsn: str, tmp_path: Path) -> None:
    async def scenario(one: House, am: Alertmanager) -> None:
        slow = incident("groq/a")
        await one.change(ChangeKind.OPENED, slow)
        await eventually(heard(am, ("firing", ["groq/a"])))
        await am.stop()
        await one.again()  # nobody is there; the next round finds it
        await am.start()
        assert await am.alerts() == []
        await one.again()
        (alert,) = await am.alerts()
        ends = datetime.fromisoformat(alert["endsAt"]) - datetime.now(UTC)
        assert timedelta(minutes=3) < ends < timedelta(minutes=4, seconds=5)
        await one.resolve(slow)
        for _ in range(3):
            await one.again()  # the end is posted again, and notified once
        await eventually(heard(am, ("firing", ["groq/a"]), ("resolved", ["groq/a"])))
        assert [each["labels"]["severity"] for each in await am.alerts() if each["status"]["state"] == "active"] == []

    on(dsn, tmp_path, scenario)


def test_an_end_that_it_missed_arrives_with_the_next_round(dsn: str, tmp_path: Path) -> None:
    async def scenario(one: House, am: Alertmanager) -> None:
        slow = incident("groq/a")
        await one.change(ChangeKind.OPENED, slow)
        await eventually(heard(am, ("firing", ["groq/a"])))
        await am.stop()
        await one.resolve(slow)  # its delivery fails
        await am.start()
        await one.again()
        await eventually(heard(am, ("firing", ["groq/a"]), ("resolved", ["groq/a"])))

    on(dsn, tmp_path, scenario)


def test_targets_of_a_provider_are_one_notification_and_what_is_silenced_is_none(dsn: str, tmp_path: Path) -> None:
    async def scenario(one: House, am: Alertmanager) -> None:
        now = datetime.now(UTC)
        silence = {
            "matchers": [{"name": "provider", "value": "cerebras", "isRegex": False, "isEqual": True}],
            "startsAt": now.isoformat(), "endsAt": (now + timedelta(hours=1)).isoformat(), "createdBy": "t", "comment": "t",
        }  # fmt: skip
        assert (await am.post("/api/v2/silences", silence)).status_code == 200
        names = [f"groq/m{n:02}" for n in range(30)]
        await one.announce(ChangeKind.OPENED, *map(incident, [*names, "cerebras/a"]))
        await one.again()  # all in one request, so that not even a busy machine spreads them over group_wait
        await eventually(heard(am, ("firing", names)))
        states = {each["labels"]["target"]: each["status"]["state"] for each in await am.alerts()}
        assert (states["cerebras/a"], states["groq/m00"], len(states)) == ("suppressed", "active", 31)

    on(dsn, tmp_path, scenario)


def test_a_severity_that_changed_is_one_alert_that_ends_and_one_that_begins(dsn: str, tmp_path: Path) -> None:
    async def scenario(one: House, am: Alertmanager) -> None:
        slow = incident("groq/a", severity=Severity.WARNING)
        await one.change(ChangeKind.OPENED, slow)
        await one.change(ChangeKind.UPDATED, replace(slow, severity=Severity.CRITICAL, channels=("am",)))
        await one.again()
        assert [each["labels"]["severity"] for each in await am.alerts()] == ["critical"]

    on(dsn, tmp_path, scenario)


def test_every_peer_is_told_and_one_that_hangs_hides_nobodys_yes() -> None:
    async def main() -> None:
        async with receiving(hang) as slow, receiving(answer(500, "no")) as sick, receiving(answer(200)) as well:
            clients = Clients(guard=Guard(tuple))
            peers = [peer.url for peer in (slow, sick, well)]
            client = clients.client(Channel(name="am", kind=ChannelKind.ALERTMANAGER, urls=tuple(peers)))
            body = {"type": "channel.test", "timestamp": "2026-01-01T00:00:00Z"}
            got = await send_alertmanager(client, peers, [body], now=datetime.now(UTC), peer_s=0.3)
            await clients.aclose()
            assert [len(peer.requests) for peer in (slow, sick, well)] == [1, 1, 1]
            assert got.ok
            assert got.text == "peer 1: no answer within 0.3 s; peer 2: 500 no"

    asyncio.run(main())


def test_nothing_stands_where_nothing_was_said_or_all_ended_long_ago(dsn: str) -> None:
    async def main() -> None:
        async with receiving(answer(200)) as peer, house(dsn, peer.url) as one:
            await one.again()
            assert peer.requests == []
            slow = incident("groq/a")
            await one.change(ChangeKind.OPENED, slow)
            await one.resolve(slow)
            await one.again()
            assert len(peer.requests) == 3
            now = datetime.now(UTC)
            assert await one.outbox.standing("am", ended_since=now) == []
            assert len(await one.outbox.standing("am", ended_since=now - timedelta(minutes=15))) == 1
            assert await one.outbox.standing("ops", ended_since=now - timedelta(minutes=15)) == []

    asyncio.run(main())
