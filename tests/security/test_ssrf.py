"""Nothing that the API makes reaches into the network: no spelling, no name, no redirect, over probes and alerts alike."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pytest

from app.alerts.guard import Guard, literal_of
from app.alerts.sending import Post
from app.alerts.transport import Clients
from app.bootstrap.config import ConfigHolder
from app.bootstrap.core import build_core
from app.bootstrap.probing import build_prober
from app.catalog.load import load_catalog
from app.measurement.model import Measurement, Outcome
from app.secrets import Redactor
from app.settings import Settings
from app.storage.queries.keys import Scope
from app.targets.load import load_channel
from app.targets.model import Channel, Config, Provider, Recipe, Target
from app.verdict.outbox import Announcement
from tests.support.doors import House, in_house
from tests.support.echoes import echoing

SENTENCE = "is not allowed: it is no public address and not in allow_networks"


def words(text: str) -> list[str]:
    return text.split()


ADDRESSES = words("""
127.0.0.1 127.1 127.0.1 127.255.255.254 2130706433 0x7f000001 0x7f.0.0.1 0x7f.1 0177.0.0.1 0177.1 017700000001 127.0.0.1. LOCALHOST localhost
0 0.0.0.0 0.0.0.1 000.000.000.000 10.0.0.1 10.255.255.255 167772161 0xa000001 012.0.0.1 172.16.0.1 172.31.255.254 192.168.1.1 3232235777
0xc0a80101 100.64.0.1 100.100.100.200 100.127.255.254 169.254.0.1 169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518
169.16689662 169.254.170.2 168.63.129.16 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.250
240.0.0.1 255.255.255.255
[::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:10.0.0.1] [::ffff:a9fe:a9fe] [::ffff:0:127.0.0.1] [::127.0.0.1]
[fe80::1] [fe80::1%25lo] [fe80::1%25eth0] [::1%25lo] [fc00::1] [fd00:ec2::254] [fdff::1] [fec0::1] [ff02::1] [100::1] [2001:db8::1] [3fff::1]
[64:ff9b::127.0.0.1] [64:ff9b::a9fe:a9fe] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2002:a9fe:a9fe::1] [2002:c0a8:101::1]
[2001:0:7f00:1::f7f7:f7f7] [2607:f8b0:4005:805:0:5efe:127.0.0.1]
127。0。0。1 １２７.0.0.1 ①②⑦.⓪.⓪.① 127.0.0.1#@8.8.8.8 127.0.0.1?@8.8.8.8
""")
UNREADABLE = ["user@127.0.0.1", "8.8.8.8@127.0.0.1", "127.0.0.1\t", "[::1", "127.0.0.1:99999", ""]


class Loop(asyncio.SelectorEventLoop):
    """A loop whose resolver says what the test says, and which tells where it was told to connect."""

    def __init__(self, doors: Doors) -> None:
        super().__init__()
        self.doors = doors

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        if self.doors.answers is None:
            return await super().getaddrinfo(host, port, **options)
        self.doors.asked.append(str(host))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, port)) for text in self.doors.answers(str(host))]

    async def sock_connect(self, sock: Any, address: Any) -> None:
        self.doors.connected.append(str(address[0]))
        if self.doors.answers is not None:
            raise ConnectionRefusedError(111, "nobody listens in a test")
        await super().sock_connect(sock, address)


@dataclass
class Doors:
    """Both ways out of the service, as they are wired."""

    folder: Path
    allow: tuple[str, ...] = ()
    answers: Callable[[str], list[str]] | None = None
    """What names resolve to; None asks this machine's resolver, and connects."""
    asked: list[str] = field(default_factory=list)
    connected: list[str] = field(default_factory=list)

    def probe(self, url: str, *, origin: Literal["file", "api"] = "api", times: int = 1) -> list[Measurement]:
        provider = Provider(name="p", base_url=url)
        target = Target(name="t", provider=provider, model="m", every_s=60.0, recipe=Recipe(name="chat-short"), origin=origin)

        async def main() -> list[Measurement]:
            async with AsyncExitStack() as stack:
                prober = build_prober(self._core(), stack)
                return [(await prober.probe(target))[1].measurement for _ in range(times)]

        return self._run(main())

    def alert(self, document: dict[str, Any], *, origin: Literal["file", "api"] = "api") -> str:
        channel = replace(load_channel("x", document), origin=origin)

        async def main() -> str:
            sender = Post(clients=Clients(guard=Guard(lambda: self.allow)), resolve=str, clean=str)
            try:
                return (await sender.send(channel, announcement(channel), now=datetime.now(UTC))).text
            finally:
                await sender.aclose()

        return self._run(main())

    def _core(self) -> Any:
        holder = ConfigHolder(catalog=load_catalog())
        holder.current = Config(allow_networks=self.allow)
        settings = Settings(_env_file=None, data=self.folder, neutral_addresses="off")
        return build_core(
            settings, dsn="postgresql://u@127.0.0.1:1/x", holder=holder, redactor=Redactor(), catalog=holder.catalog
        )

    def _run(self, main: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=lambda: Loop(self)) as runner:
            return runner.run(main)


def announcement(channel: Channel) -> Announcement:
    body = {"type": "channel.test", "timestamp": "2026-01-01T00:00:00Z", "data": {"incident": None, "verdict": None}}
    return Announcement(id=uuid4().hex, channel=channel.name, type="channel.test", body=body, created_at=datetime.now(UTC))


def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(set(ADDRESSES)) >= 40


@pytest.mark.parametrize("host", ADDRESSES)
@pytest.mark.parametrize("kind", ["webhook", "alertmanager"])
def test_a_channel_made_by_the_api_is_refused_every_address_that_is_not_public(tmp_path: Path, host: str, kind: str) -> None:
    doors = Doors(tmp_path)
    said = doors.alert({"kind": kind, "url": f"http://{host}/x"})
    assert SENTENCE in said
    assert doors.connected == []


@pytest.mark.parametrize(
    "host", [host for host in ADDRESSES if not host.startswith(("0177.0", "012", "0251", "000", "①", "１")) and host[-1] != "."]
)
def test_a_target_made_by_the_api_is_refused_every_address_that_is_not_public(tmp_path: Path, host: str) -> None:
    doors = Doors(tmp_path)
    (m,) = doors.probe(f"http://{host}/v1")
    assert (m.outcome, SENTENCE in (m.error_text or "")) == (Outcome.LOCAL_ERROR, True)
    assert doors.connected == []


@pytest.mark.parametrize("host", ADDRESSES)
def test_no_spelling_of_an_address_makes_a_probe_connect(tmp_path: Path, host: str) -> None:
    doors = Doors(tmp_path)
    (m,) = doors.probe(f"http://{host}/v1")
    assert m.outcome in {Outcome.LOCAL_ERROR, Outcome.PROVIDER_ERROR}
    assert doors.connected == []


@pytest.mark.parametrize("host", UNREADABLE)
@pytest.mark.parametrize("kind", ["webhook", "alertmanager"])
def test_a_url_that_can_be_read_in_two_ways_is_refused_when_it_is_made(dsn: str, host: str, kind: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key(Scope.WRITE)) as client:
            answer = await client.post("/api/v1/channels", json={"name": "x", "kind": kind, "url": f"http://{host}/"})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "url")

    in_house(dsn, scenario)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://127.0.0.1/", "unix:///run/docker.sock", "ftp://h/", "//h/", "javascript:1"]
)
def test_only_http_is_spoken(dsn: str, url: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key(Scope.WRITE)) as client:
            answer = await client.post("/api/v1/channels", json={"name": "x", "kind": "webhook", "url": url})
        assert answer.status_code == 422

    in_house(dsn, scenario)


@pytest.mark.parametrize("inside", ["127.0.0.1", "10.0.0.7", "169.254.169.254", "::ffff:169.254.169.254", "fd00::1"])
def test_a_name_that_points_inside_is_refused(tmp_path: Path, inside: str) -> None:
    doors = Doors(tmp_path, answers=lambda _: [inside])
    (m,) = doors.probe("http://innocent.example/v1")
    assert SENTENCE in (m.error_text or "")
    assert doors.connected == []


def test_a_name_that_changes_its_mind_is_connected_to_where_it_was_checked_and_not_where_it_points_next(tmp_path: Path) -> None:
    told = iter(["93.184.216.34", "127.0.0.1", "93.184.216.34", "169.254.169.254"])
    doors = Doors(tmp_path, answers=lambda _: [next(told)])
    outcomes = [m.outcome for m in doors.probe("http://rebinding.example/v1", times=4)]
    assert outcomes == [Outcome.PROVIDER_ERROR, Outcome.LOCAL_ERROR] * 2
    assert doors.connected == ["93.184.216.34"] * 2
    assert doors.asked == ["rebinding.example"] * 4


def test_a_name_with_one_address_outside_and_one_inside_leads_inside_never(tmp_path: Path) -> None:
    doors = Doors(tmp_path, answers=lambda _: ["93.184.216.34", "127.0.0.1"])
    doors.probe("http://mixed.example/v1")
    assert doors.connected == ["93.184.216.34"]


def test_a_redirect_leads_nowhere(tmp_path: Path) -> None:
    with echoing() as echoes:
        doors = Doors(tmp_path, allow=("127.0.0.0/8",))
        (m,) = doors.probe(f"{echoes.url}/moved/v1")
        said = Doors(tmp_path, allow=("127.0.0.0/8",)).alert({"kind": "webhook", "url": f"{echoes.url}/moved/x"})
        assert echoes.at("/stolen") == []
        assert len(echoes.at("/moved")) == 2
    assert m.http_status == 307
    assert m.outcome is not Outcome.OK
    assert "redirect, which is not followed" in said


@pytest.mark.parametrize("allow", [("127.0.0.1/32",), ("127.0.0.0/8", "10.0.0.0/8"), ("0.0.0.0/0",)])
def test_an_allowed_network_works_for_probes_and_alerts(tmp_path: Path, allow: tuple[str, ...]) -> None:
    with echoing() as echoes:
        (m,) = Doors(tmp_path, allow=allow).probe(f"{echoes.url}/fine/v1")
        said = Doors(tmp_path, allow=allow).alert({"kind": "webhook", "url": f"{echoes.url}/hook"})
        assert (m.outcome, len(echoes.at("/hook"))) == (Outcome.OK, 1)
        assert SENTENCE not in said


def test_what_the_config_file_states_is_trusted(tmp_path: Path) -> None:
    with echoing() as echoes:
        (m,) = Doors(tmp_path).probe(f"{echoes.url}/fine/v1", origin="file")
        Doors(tmp_path).alert({"kind": "webhook", "url": f"{echoes.url}/hook"}, origin="file")
        assert (m.outcome, len(echoes.at("/hook"))) == (Outcome.OK, 1)


def test_a_target_and_a_channel_that_came_through_the_api_are_the_ones_that_are_guarded(dsn: str, tmp_path: Path) -> None:
    """`lab` stands in the file at 127.0.0.1: its own target may go there, one that somebody adds may not."""

    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key(Scope.WRITE)) as client:
            made = await client.post("/api/v1/targets", json={"name": "added", "provider": "lab", "model": "m"})
            hook = await client.post("/api/v1/channels", json={"name": "hook", "kind": "webhook", "url": "http://127.0.0.1:9/"})
            assert (made.status_code, hook.status_code) == (201, 201)
        config = house.holder.current
        targets = {target.name: target for target in config.targets}
        async with AsyncExitStack() as stack:
            prober = build_prober(Doors(tmp_path)._core(), stack)
            outcomes = {name: (await prober.probe(targets[name]))[1].measurement.outcome for name in ("added", "lab/tiny")}
        assert outcomes == {"added": Outcome.LOCAL_ERROR, "lab/tiny": Outcome.PROVIDER_ERROR}
        sender = Post(clients=Clients(guard=Guard(lambda: config.allow_networks)), resolve=str, clean=str)
        said = await sender.send(config.channels["hook"], announcement(config.channels["hook"]), now=datetime.now(UTC))
        await sender.aclose()
        assert SENTENCE in said.text

    in_house(dsn, scenario)


def test_an_apprise_url_of_the_api_names_a_service_and_no_host(tmp_path: Path) -> None:
    for url in ("json://127.0.0.1:8080/", "xml://10.0.0.1", "mailto://u:p@127.0.0.1", "apprise://127.0.0.1/token"):
        assert "may use Apprise for" in Doors(tmp_path).alert({"kind": "apprise", "url": url})


@pytest.mark.parametrize(
    "name", ["localhost", "example.com", "1.2.3.4.5", "0x", "256.256.256.256.1", "cafe", "1..2", "-1", "+1", "1_0"]
)
def test_a_name_is_not_taken_for_an_address(name: str) -> None:
    assert literal_of(name) is None
