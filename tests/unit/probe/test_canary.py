"""Several providers unreachable at once and no neutral address either: that is our network, and no provider's fault."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from app.clock import FakeClock
from app.measurement.model import ErrorClass, Measurement, Outcome, Reading
from app.measurement.recording import Failure, FailureKind, Marks, Recording
from app.probe.canary import Canary, is_far, reachable
from app.targets.model import Provider, Recipe, Target
from tests.support.runs import NOW

KINDS = {
    FailureKind.CONNECT: Outcome.PROVIDER_ERROR,
    FailureKind.DEADLINE_CONNECT: Outcome.TIMEOUT,
    FailureKind.STALL: Outcome.STALLED,
}


def target(provider: str, url: str = "https://api.example/v1") -> Target:
    return Target(
        name=f"{provider}/m",
        provider=Provider(name=provider, base_url=url),
        model="m",
        every_s=60.0,
        recipe=Recipe(name="chat-short"),
    )


@dataclass
class Wire:
    """Answers each provider with the failure that is set for it, or well."""

    failing: dict[str, FailureKind] = field(default_factory=dict)

    async def probe(self, target: Target, *, scheduled_at: datetime | None = None) -> tuple[Recording, Reading]:
        kind = self.failing.get(target.provider.name)
        recording = Recording(
            base_url="", model="m", recipe="r", dialect="openai", marks=Marks(started=0), started_at=scheduled_at or NOW
        )
        if kind is None or kind is FailureKind.STALL:
            recording.marks.connected = 1
        if kind is None:
            return recording, Reading(measurement=Measurement(outcome=Outcome.OK, error_class=ErrorClass.NONE))
        recording.failure = Failure(kind=kind, text="no")
        return recording, Reading(measurement=Measurement(outcome=KINDS[kind], error_class=ErrorClass.CONNECT, error_text="no"))


@dataclass
class Neutral:
    up: bool = True
    looks: int = 0

    async def look(self) -> bool:
        self.looks += 1
        return self.up


@dataclass
class Host:
    wire: Wire = field(default_factory=Wire)
    neutral: Neutral = field(default_factory=Neutral)
    clock: FakeClock = field(default_factory=FakeClock)
    providers: int = 3

    def __post_init__(self) -> None:
        self.canary = Canary(inner=self.wire, look=self.neutral.look, clock=self.clock, providers=lambda: self.providers)

    async def outcome(self, provider: str, **more: str) -> Outcome:
        self.clock.advance(10)
        _, reading = await self.canary.probe(target(provider, **more))
        return reading.measurement.outcome

    def cut(self, *providers: str) -> None:
        self.wire.failing = dict.fromkeys(providers, FailureKind.CONNECT)


def on(scenario: Callable[[Host], Awaitable[None]], **options: int) -> Host:
    host = Host(**options)
    asyncio.run(scenario(host))  # type: ignore[arg-type]  # a coroutine
    return host


def test_with_our_network_down_failures_are_local_errors_and_no_providers() -> None:
    async def scenario(host: Host) -> None:
        await host.canary.keep()
        host.cut("a", "b", "c")
        host.neutral.up = False
        assert await host.outcome("a") is Outcome.PROVIDER_ERROR  # one alone proves nothing yet
        assert await host.outcome("b") is Outcome.LOCAL_ERROR
        assert await host.outcome("a") is Outcome.LOCAL_ERROR
        assert host.canary.down
        host.cut()
        host.neutral.up = True
        assert await host.outcome("c") is Outcome.OK
        assert not host.canary.down

    on(scenario)


def test_what_is_blamed_on_us_says_so_and_keeps_what_was_seen() -> None:
    async def scenario(host: Host) -> None:
        await host.canary.keep()
        host.cut("a")
        host.neutral.up = False
        host.clock.advance(10)
        _, reading = await host.canary.probe(target("a"))
        m = reading.measurement
        assert (m.error_class, m.notes) == (ErrorClass.LOCAL, ("own_network_down",))
        assert m.error_text == "this host's own network is down: no"

    on(scenario, providers=1)


def test_providers_that_fail_together_while_the_neutral_address_answers_are_to_blame() -> None:
    async def scenario(host: Host) -> None:
        host.cut("a", "b")
        assert [await host.outcome(each) for each in "abab"] == [Outcome.PROVIDER_ERROR] * 4
        assert not host.canary.down

    assert on(scenario).neutral.looks >= 1


def test_one_provider_that_fails_beside_one_that_answers_is_to_blame_and_nobody_looks() -> None:
    async def scenario(host: Host) -> None:
        host.cut("a")
        for _ in range(3):
            assert await host.outcome("a") is Outcome.PROVIDER_ERROR
            assert await host.outcome("b") is Outcome.OK

    assert on(scenario).neutral.looks == 0


def test_failures_hours_apart_are_not_at_once() -> None:
    async def scenario(host: Host) -> None:
        host.cut("a", "b")
        await host.outcome("a")
        host.clock.advance(3600)
        await host.outcome("b")

    assert on(scenario).neutral.looks == 0


def test_a_canary_that_never_answered_proves_nothing() -> None:
    async def scenario(host: Host) -> None:
        host.neutral.up = False
        host.cut("a", "b")
        assert [await host.outcome(each) for each in "abab"] == [Outcome.PROVIDER_ERROR] * 4
        assert not host.canary.down

    on(scenario)


def test_a_stream_that_broke_off_after_it_was_connected_is_never_ours() -> None:
    async def scenario(host: Host) -> None:
        await host.canary.keep()
        host.neutral.up = False
        host.wire.failing = dict.fromkeys("ab", FailureKind.STALL)
        assert [await host.outcome(each) for each in "abab"] == [Outcome.STALLED] * 4

    on(scenario)


def test_a_server_on_this_host_fails_on_its_own_account() -> None:
    async def scenario(host: Host) -> None:
        await host.canary.keep()
        host.neutral.up = False
        host.cut("a", "b")
        for _ in range(2):
            assert await host.outcome("a", url="http://127.0.0.1:8000/v1") is Outcome.PROVIDER_ERROR
            assert await host.outcome("b", url="http://localhost:8000/v1") is Outcome.PROVIDER_ERROR

    assert on(scenario).neutral.looks == 1


def test_many_probes_that_fail_together_share_one_look() -> None:
    async def scenario(host: Host) -> None:
        await host.canary.keep()
        host.clock.advance(400)
        host.neutral.up = False
        names = [f"p{n}" for n in range(30)]
        host.cut(*names)
        await asyncio.gather(*(host.canary.probe(target(name)) for name in names))
        assert host.neutral.looks == 2

    on(scenario)


def test_a_network_that_is_back_is_noticed_without_a_probe_and_an_idle_canary_is_left_alone() -> None:
    async def scenario(host: Host) -> None:
        for _ in range(20):
            await host.canary.keep()
        assert host.neutral.looks == 1
        host.cut("a", "b")
        host.neutral.up = False
        await host.outcome("a")
        await host.outcome("b")
        assert host.canary.down
        host.clock.advance(6)
        await host.canary.keep()
        assert host.canary.down
        host.neutral.up = True
        host.clock.advance(6)
        await host.canary.keep()
        assert not host.canary.down

    on(scenario)


def test_without_a_canary_every_failure_is_the_providers() -> None:
    async def main() -> None:
        wire = Wire(failing=dict.fromkeys("ab", FailureKind.CONNECT))
        canary = Canary(inner=wire, look=None, clock=FakeClock(), providers=lambda: 2)
        await canary.keep()
        outcomes = [(await canary.probe(target(each)))[1].measurement.outcome for each in "abab"]
        assert outcomes == [Outcome.PROVIDER_ERROR] * 4

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "far"),
    [
        ("https://api.groq.com/openai/v1", True), ("http://10.0.0.5:8000/v1", True), ("http://127.0.0.1:1/v1", False),
        ("http://[::1]:1/v1", False), ("http://localhost/v1", False), ("http://x.localhost/v1", False),
    ],
)  # fmt: skip
def test_only_what_lies_behind_a_network_can_be_cut_off(url: str, *, far: bool) -> None:
    assert is_far(url) is far


def test_one_address_that_takes_a_connection_is_enough_and_a_closed_port_is_none() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as open_door, socket.create_server(("127.0.0.1", 0)) as door:
            there, gone = open_door.getsockname(), door.getsockname()
            door.close()
            assert await reachable([there, gone])
            assert not await reachable([gone])
            assert not await reachable([])

    asyncio.run(main())
