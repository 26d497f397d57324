"""Deadlines and broken streams on real sockets, with times a person would set: right outcome, within half a second of its time."""

import asyncio
from random import Random

import pytest

from app.clock import SystemClock
from app.measurement.model import Measurement
from app.probe.client import Clients
from app.probe.prober import Prober
from app.targets.model import Deadlines, Provider, Recipe, Target
from tests.support.scenarios import BASE, chunk, data, fin, usage
from tests.support.scripted import Script, framed, head, request_of, reset, serving

WITHIN_S = 0.5


def probe(script: Script, deadlines: Deadlines | None = None) -> Measurement:
    async def main(port: int) -> Measurement:
        provider = Provider(name="p", base_url=f"http://127.0.0.1:{port}/v1")
        target = Target(
            name="t",
            provider=provider,
            model="m",
            every_s=600,
            recipe=Recipe(name="chat-short"),
            deadlines=deadlines or Deadlines(),
        )
        clients = Clients()
        prober = Prober(clients=clients, resolve=lambda _: "", clock=SystemClock(), rng=Random(1))
        try:
            return (await prober.probe(target))[1].measurement
        finally:
            await clients.aclose()

    with serving(script) as port:
        return asyncio.run(main(port))


async def _every(writer: asyncio.StreamWriter, seconds: float, raw: bytes, times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(seconds)
        writer.write(framed(raw))
        await writer.drain()


def test_comments_every_half_second_end_at_the_first_token_deadline() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(head())
        await _every(writer, 0.5, b": still here\n\n", 100)

    m = probe(script, Deadlines(connect_s=1.0, first_token_s=2.2, stall_s=30.0, total_s=60.0))
    assert (m.outcome, m.ttft_s) == ("timeout", None)
    assert m.total_s == pytest.approx(2.2, abs=WITHIN_S)


def test_a_stream_that_stops_is_stalled_from_its_last_output_on_whatever_comments_come() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(head())
        await _every(writer, 0.1, data(chunk(content="x")), 5)
        await _every(writer, 0.2, b": still here\n\n", 100)

    m = probe(script, Deadlines(connect_s=1.0, first_token_s=10.0, stall_s=1.5, total_s=60.0))
    assert (m.outcome, m.error_class) == ("stalled", "stall")
    assert m.e2e_s is not None
    assert m.total_s == pytest.approx(m.e2e_s + 1.5, abs=WITHIN_S)


def test_a_reset_in_the_middle_ends_at_once() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(head() + b"".join(framed(raw) for _, raw in BASE[:8]))
        await writer.drain()
        await asyncio.sleep(0.2)
        reset(writer)

    m = probe(script)
    assert (m.outcome, m.error_class) == ("provider_error", "reset")
    assert m.total_s == pytest.approx(0.2, abs=WITHIN_S)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_healthy_stream_of_two_minutes_is_ok() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(head())
        await _every(writer, 0.5, data(chunk(content="x")), 240)
        writer.write(framed(data(fin()) + data(usage(240)) + b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await writer.drain()

    m = probe(script)
    assert (m.outcome, m.output_tokens) == ("ok", 240)
    assert m.total_s == pytest.approx(120.0, rel=0.1)
