"""The prober on real sockets: right outcomes and figures, deadlines that hold, keys that stay secret."""

import asyncio
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import trustme

from app.clock import SystemClock
from app.errors import ForbiddenError
from app.measurement.measure import measure
from app.measurement.model import Measurement, Outcome
from app.measurement.recording import Recording, StampSource
from app.probe.client import Clients
from app.probe.prober import Prober
from app.probe.wire import Guard
from app.targets.model import Connection, Deadlines, Provider, Recipe, SecretRef, SecretSource, Target
from app.targets.recipes import BUILTIN
from tests.support.scenarios import BASE, SCENARIOS, Scenario, chunk, data
from tests.support.scripted import Script, framed, head, play, request_of, reset, serving

KEY = "sk-canary-0123456789abcdef"


def target(url: str, *, deadlines: Deadlines | None = None, connection: Connection = Connection.COLD) -> Target:
    return Target(
        name="t",
        provider=Provider(name="p", base_url=url, api_key=SecretRef(source=SecretSource.ENV, name="KEY")),
        model="m",
        every_s=60,
        recipe=Recipe(name="chat-short"),
        deadlines=deadlines or Deadlines(),
        connection=connection,
    )


def probe(
    *targets: Target, tls: ssl.SSLContext | None = None, guard: Guard | None = None, key: str = KEY, kernel: bool = True
) -> list[tuple[Recording, Measurement]]:
    async def main() -> list[tuple[Recording, Measurement]]:
        clients = Clients(tls=tls, guard=guard, kernel=kernel)
        prober = Prober(clients=clients, resolve=lambda _: key, clock=SystemClock(), rng=Random(1))
        try:
            found = [await prober.probe(each) for each in targets]
        finally:
            await clients.aclose()
        return [(recording, reading.measurement) for recording, reading in found]

    return asyncio.run(main())


def written(scenario: Scenario, wrote: list[tuple[int, int]], planned_ms: float) -> tuple[float, float]:
    """When the write planned for then was really made: between which two monotonic instants, in seconds.

    Where none was planned for just then, it is the nearest one's lateness that counts.
    """
    which = min(range(len(wrote)), key=lambda n: abs(scenario.writes[n][0] - planned_ms))
    moved = (planned_ms - scenario.writes[which][0]) / 1e3
    return wrote[which][0] / 1e9 + moved, wrote[which][1] / 1e9 + moved


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_each_scenario_on_a_real_socket(scenario: Scenario) -> None:
    wrote: list[tuple[int, int]] = []
    with serving(play(scenario, wrote)) as port:
        ((recording, m),) = probe(target(f"http://127.0.0.1:{port}/v1"))
    assert (m.outcome, m.error_class) == (scenario.outcome, scenario.error_class)
    assert m.output_tokens == scenario.tokens
    assert recording.stamp_source is StampSource.KERNEL
    assert (m.tpot_s is None) == (scenario.tpot_ms is None)
    if scenario.ttft_ms is None:
        return
    assert m.ttft_s is not None
    assert m.e2e_s is not None
    assert recording.marks.request_sent is not None
    sent = recording.marks.request_sent / 1e9
    before, after = written(scenario, wrote, scenario.ttft_ms)
    reading = measure(recording)
    planned = (
        5 if scenario.name == "multi" else 1
    )  # tokens of the first chunk; a machine put aside reads several chunks at once
    bundled = (reading.read_tokens[0] - planned) * (scenario.tpot_ms or 0.0) / 1000
    assert before - sent - 0.001 <= m.ttft_s <= after - sent + 0.005 + bundled
    if scenario.tpot_ms is not None and m.tpot_s is not None:
        later = (scenario.tokens or 0) - reading.read_tokens[0]
        assert m.tpot_s * later == pytest.approx(m.e2e_s - m.ttft_s)
        last = written(scenario, wrote, scenario.ttft_ms + scenario.tpot_ms * ((scenario.tokens or 0) - planned))
        assert last[0] - after - 0.005 - bundled <= m.e2e_s - m.ttft_s <= last[1] - before + 0.005


def test_tls_is_measured_with_the_same_stamps(tmp_path: Path) -> None:
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(client)
    with serving(play(SCENARIOS[0]), tls=server) as port:
        (recording, m), (_, untrusted) = (
            probe(target(f"https://localhost:{port}/v1"), tls=client)[0],
            probe(target(f"https://localhost:{port}/v1"))[0],
        )
    assert m.outcome == "ok"
    assert recording.stamp_source is StampSource.KERNEL
    assert m.ttft_s == pytest.approx(0.2, abs=0.05)
    assert m.phases.tls_s is not None
    assert m.phases.dns_s is not None
    assert (untrusted.outcome, untrusted.error_class) == ("provider_error", "tls")
    assert untrusted.phases.connect_s is not None


def test_the_phases_and_the_stream_sum_to_the_total() -> None:
    with serving(play(SCENARIOS[0])) as port:
        ((recording, m),) = probe(target(f"http://127.0.0.1:{port}/v1"))
    marks = recording.marks
    assert marks.request_sent is not None
    assert marks.closed is not None
    parts = [m.phases.connect_s, m.phases.send_s]
    assert sum(p for p in parts if p is not None) == pytest.approx(m.presend_s, abs=1e-9)
    assert m.presend_s is not None
    assert m.total_s == pytest.approx(m.presend_s + (marks.closed - marks.request_sent) / 1e9, abs=1e-9)


def test_stamps_without_the_kernel_say_so() -> None:
    with serving(play(SCENARIOS[0])) as port:
        ((recording, m),) = probe(target(f"http://127.0.0.1:{port}/v1"), kernel=False)
    assert (m.outcome, recording.stamp_source) == ("ok", StampSource.LOOP)


def test_a_kept_connection_is_used_again_and_told_apart() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_of(reader)
            writer.write(head() + b"".join(framed(raw) for _, raw in BASE) + b"0\r\n\r\n")
            await writer.drain()

    with serving(script) as port:
        url = f"http://127.0.0.1:{port}/v1"
        first, second = probe(*[target(url, connection=Connection.WARM)] * 2)
    assert (first[1].outcome, second[1].outcome) == ("ok", "ok")
    assert first[1].phases.connect_s is not None
    assert second[1].phases.connect_s is None
    assert second[1].output_tokens == 20


SHORT = Deadlines(connect_s=0.5, first_token_s=0.6, stall_s=0.5, total_s=3.0)


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request_of(reader)
    await asyncio.sleep(30)


async def _comments(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request_of(reader)
    writer.write(head())
    while True:
        writer.write(framed(b": still here\n\n"))
        await writer.drain()
        await asyncio.sleep(0.05)


async def _stops(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request_of(reader)
    writer.write(head() + b"".join(framed(raw) for _, raw in BASE[:8]))
    while True:
        writer.write(framed(b": still here\n\n"))
        await writer.drain()
        await asyncio.sleep(0.05)


async def _never_ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request_of(reader)
    writer.write(head())
    while True:
        writer.write(framed(data(chunk(content="x"))))
        await writer.drain()
        await asyncio.sleep(0.05)


async def _half_a_chunk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request_of(reader)
    writer.write(head() + framed(BASE[1][1]) + b"ff\r\ndata: {")
    await writer.drain()


async def _reset_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request_of(reader)
    reset(writer)


async def _not_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request_of(reader)
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize(
    ("script", "outcome", "error_class", "seconds"),
    [
        (_silent, "timeout", "timeout", 0.6),
        (_comments, "timeout", "timeout", 0.6),
        (_stops, "stalled", "stall", 0.5),
        (_never_ends, "timeout", "timeout", 3.0),
        (_half_a_chunk, "truncated", "truncated", 0.0),
        (_reset_at_once, "provider_error", "reset", 0.0),
        (_not_http, "provider_error", "reset", 0.0),
    ],
)
def test_a_server_that_misbehaves_ends_in_time_with_the_right_outcome(
    script: Script, outcome: str, error_class: str, seconds: float
) -> None:
    with serving(script) as port:
        ((_, m),) = probe(target(f"http://127.0.0.1:{port}/v1", deadlines=SHORT))
    assert (m.outcome, m.error_class) == (outcome, error_class)
    assert m.total_s == pytest.approx(seconds, abs=0.5)


def test_nobody_listens_and_an_unknown_name_are_told_apart() -> None:
    with serving(_silent) as port:
        pass
    ((_, refused),) = probe(target(f"http://127.0.0.1:{port}/v1"))
    ((_, unknown),) = probe(target("http://no-such-host.invalid/v1"))
    assert (refused.outcome, refused.error_class) == ("provider_error", "connect")
    assert (unknown.outcome, unknown.error_class) in {("provider_error", "dns"), ("local_error", "local")}
    assert refused.ttft_s is None


def test_the_guard_is_asked_about_the_address_that_is_connected_to() -> None:
    asked: list[str] = []

    def guard(address: object) -> None:
        asked.append(str(address))
        raise ForbiddenError("127.0.0.1 is a loopback address")

    ((_, m),) = probe(target("http://localhost:9/v1"), guard=guard)
    assert asked
    assert (m.outcome, m.error_text) == ("local_error", "127.0.0.1 is a loopback address")


def test_a_key_that_the_provider_sends_back_is_in_no_text() -> None:
    async def echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(
            head(401, content_type="application/json") + framed(f'{{"error": "no such key {KEY}"}}'.encode()) + b"0\r\n\r\n"
        )
        await writer.drain()

    with serving(echoes) as port:
        ((_, m),) = probe(target(f"http://127.0.0.1:{port}/v1"))
    assert m.outcome == "auth"
    assert m.error_text == "no such key [redacted]"


def test_a_refused_parameter_is_left_out_once_and_for_all() -> None:
    bodies: list[bytes] = []

    async def refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append(await request_of(reader))
        if b"stream_options" in bodies[-1]:
            error = b'{"error": {"message": "Extra inputs are not permitted: stream_options"}}'
            writer.write(head(422, content_type="application/json") + framed(error) + b"0\r\n\r\n")
        else:
            writer.write(head() + b"".join(framed(raw) for _, raw in BASE) + b"0\r\n\r\n")
        await writer.drain()

    with serving(refuses) as port:
        found = probe(*[target(f"http://127.0.0.1:{port}/v1")] * 2)
    assert [m.outcome for _, m in found] == ["ok", "ok"]
    assert ["without_stream_options" in m.notes for _, m in found] == [True, True]
    assert len(bodies) == 3


def test_a_prompt_that_the_provider_sends_back_is_in_no_text() -> None:
    async def echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = json.loads((await request_of(reader)).split(b"\r\n\r\n", 1)[1])["messages"][0]["content"]
        error = json.dumps({"detail": [{"loc": ["body", "messages"], "msg": f"bad value: {asked[:120]!r} here"}]}).encode()
        writer.write(head(422, content_type="application/json") + framed(error) + b"0\r\n\r\n")
        await writer.drain()

    with serving(echoes) as port:
        ((_, m),) = probe(target(f"http://127.0.0.1:{port}/v1"))
    assert (m.outcome, m.error_text) == ("bad_request", "bad value: '[prompt]' here")


def test_a_paired_recipe_calls_twice_with_one_beginning_and_measures_the_second() -> None:
    prompts: list[str] = []

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        prompts.append(json.loads((await request_of(reader)).split(b"\r\n\r\n", 1)[1])["messages"][0]["content"])
        await asyncio.sleep(0.3 if len(prompts) == 1 else 0.0)
        writer.write(head() + b"".join(framed(raw) for _, raw in BASE) + b"0\r\n\r\n")
        await writer.drain()

    with serving(answers) as port:
        ((_, m),) = probe(replace(target(f"http://127.0.0.1:{port}/v1"), recipe=BUILTIN["warm-prefix"]))
    assert (m.outcome, len(prompts)) == ("ok", 2)
    assert prompts[0] != prompts[1]
    assert prompts[0][:5000] == prompts[1][:5000]
    assert m.cold_ttft_s is not None
    assert m.ttft_s is not None
    assert m.ttft_s < m.cold_ttft_s


def _at_once(count: int) -> Callable[[int], list[Measurement]]:
    def run(port: int) -> list[Measurement]:
        async def main() -> list[Measurement]:
            clients = Clients()
            prober = Prober(clients=clients, resolve=lambda _: KEY, clock=SystemClock(), rng=Random(1))
            each = [replace(target(f"http://127.0.0.1:{port}/v1"), name=f"t{n}") for n in range(count)]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(prober.probe(one)) for one in each]
            await clients.aclose()
            return [task.result()[1].measurement for task in tasks]

        return asyncio.run(main())

    return run


def test_thirty_at_once_do_not_disturb_each_other() -> None:
    with serving(play(SCENARIOS[0])) as port:
        found = _at_once(30)(port)
    assert {m.outcome for m in found} == {"ok"}
    assert {m.output_tokens for m in found} == {20}


def test_a_loop_that_was_blocked_over_a_deadline_blames_itself_and_not_the_provider() -> None:
    async def main() -> Measurement:
        prober = Prober(clients=Clients(), resolve=lambda _: KEY, clock=SystemClock(), rng=Random(1))
        held: list[asyncio.StreamWriter] = []
        silent = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/v1"
        running = asyncio.create_task(prober.probe(target(url, deadlines=Deadlines(first_token_s=0.6, total_s=2.0))))
        await asyncio.sleep(0.2)
        time.sleep(0.7)  # noqa: ASYNC251 - that is the fault
        _, reading = await running
        await prober.clients.aclose()
        silent.close()
        for writer in held:
            writer.close()
            await writer.wait_closed()
        return reading.measurement

    m = asyncio.run(main())
    assert m.outcome is Outcome.LOCAL_ERROR
    assert m.loop_lag_s is not None
    assert m.loop_lag_s > 0.5
