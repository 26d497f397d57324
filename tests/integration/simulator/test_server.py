"""The simulated providers on real sockets, read by the prober that the product uses."""

import asyncio
import http.client
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest

from app.catalog.load import Catalog, load_catalog
from app.clock import SystemClock
from app.measurement.model import Measurement
from app.probe.client import Clients
from app.probe.prober import Prober
from app.simulator.faults import Fault
from app.simulator.hidden import Hidden
from app.simulator.host import Host
from app.simulator.plan import Habits
from app.simulator.server import Server, serve
from app.targets.model import Connection, Deadlines, Provider, Recipe, Target

T = TypeVar("T")
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA = Hidden(model_spec=MODEL, hardware="H100-SXM-80GB")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def with_hosts(catalog: Catalog, *hosts: Host, run: Callable[[Server], Awaitable[T]]) -> T:
    async def main() -> T:
        async with serve(hosts, catalog=catalog) as server:
            return await run(server)

    return asyncio.run(main())


def probed(catalog: Catalog, host: Host, *, tokens: int = 64, times: int = 1, stall_s: float = 5.0) -> list[Measurement]:
    async def run(server: Server) -> list[Measurement]:
        clients = Clients()
        prober = Prober(clients=clients, resolve=lambda _: "", clock=SystemClock(), rng=Random(1))
        target = Target(
            name="t",
            provider=Provider(name=host.name, base_url=f"http://127.0.0.1:{server.port}/{host.name}/v1", dialect=host.dialect),
            model=MODEL,
            every_s=60,
            recipe=Recipe(name="r", output_tokens=tokens),
            deadlines=Deadlines(stall_s=stall_s),
            connection=Connection.WARM,
        )
        try:
            return [(await prober.probe(target))[1].measurement for _ in range(times)]
        finally:
            await clients.aclose()

    return with_hosts(catalog, host, run=run)


def fetch(server: Server, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
        answer = connection.getresponse()
        raw = answer.read()
        return answer.status, json.loads(raw) if answer.headers.get_content_type() == "application/json" else raw
    finally:
        connection.close()


def test_a_probe_measures_the_speed_that_the_theory_gives(catalog: Catalog) -> None:
    host = Host(name="h", model=MODEL, hidden=LLAMA, habits=Habits(queue_median_s=0.1, queue_sigma=0.0))
    (m,) = probed(catalog, host)
    assert m.outcome == "ok"
    assert m.output_tokens == 64
    assert m.decode_tps == pytest.approx(132.7, rel=0.08)
    assert m.ttft_s == pytest.approx(0.1125, abs=0.05)


@pytest.mark.parametrize(
    ("fault", "outcome", "error_class"),
    [
        (Fault.RATE_LIMITED, "rate_limited", "rate_limited"),
        (Fault.SERVER_ERROR, "provider_error", "server_error"),
        (Fault.OVERLOADED, "provider_error", "overloaded"),
        (Fault.BAD_GATEWAY, "provider_error", "bad_gateway"),
        (Fault.ERROR_INSIDE, "provider_error", "server_error"),
        (Fault.TRUNCATED, "truncated", "truncated"),
        (Fault.RESET, "provider_error", "reset"),
        (Fault.STALLED, "stalled", "stall"),
        (Fault.EMPTY, "empty", "empty"),
    ],
)
@pytest.mark.parametrize("dialect", ["openrouter", "cerebras"])
def test_a_probe_names_every_fault(dialect: str, fault: Fault, outcome: str, error_class: str, catalog: Catalog) -> None:
    host = Host(name="h", model=MODEL, hidden=LLAMA, dialect=dialect, odds={fault: 1.0})
    for m in probed(catalog, host, tokens=24, times=2, stall_s=0.3):
        assert (m.outcome, m.error_class) == (outcome, error_class)
        assert m.retry_after_s == (2 if fault is Fault.RATE_LIMITED else None)


def test_comments_are_no_output(catalog: Catalog) -> None:
    host = Host(name="h", model=MODEL, hidden=LLAMA, dialect="openrouter", habits=Habits(queue_median_s=0.5, queue_sigma=0.0))
    (m,) = probed(catalog, host, tokens=16)
    assert m.ttft_s == pytest.approx(0.5125, abs=0.05)


def test_everything_else_is_answered_as_a_provider_would(catalog: Catalog) -> None:
    host = Host(name="h", model=MODEL, hidden=LLAMA, key="k")
    open_host = Host(name="o", model=MODEL, hidden=LLAMA)
    ask = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}

    def calls(server: Server) -> list[tuple[int, Any]]:
        return [
            fetch(server, "GET", "/livez"),
            fetch(server, "GET", "/nobody/v1/models"),
            fetch(server, "GET", "/h/v1/models", authorization="Bearer wrong"),
            fetch(server, "GET", "/h/v1/models", authorization="Bearer k"),
            fetch(server, "DELETE", "/o/v1/models"),
            fetch(server, "POST", "/o/v1/chat/completions", {**ask, "model": "other"}),
            fetch(server, "POST", "/o/v1/chat/completions", {**ask, "max_tokens": -1}),
            fetch(server, "POST", "/o/v1/chat/completions", ask),
            fetch(server, "POST", "/o/v1/chat/completions", ask, **{"transfer-encoding": "gzip", "content-length": "9"}),
        ]

    async def run(server: Server) -> list[tuple[int, Any]]:
        return await asyncio.to_thread(calls, server)

    found = with_hosts(catalog, host, open_host, run=run)
    assert [status for status, _ in found] == [200, 404, 401, 200, 404, 404, 400, 200, 400]
    assert found[3][1]["data"][0]["id"] == MODEL
    assert found[7][1]["usage"]["completion_tokens"] == 3


def test_bytes_that_are_no_request_are_refused_and_half_of_one_ends_quietly(catalog: Catalog) -> None:
    async def talk(server: Server, data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(data)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer

    async def run(server: Server) -> list[bytes]:
        wrong = (
            b"nonsense\r\n\r\n",
            b"GET / HTTP/1.1\r\nx: " + b"y" * 70000,
            b"GET / HT",
            b"GET / HTTP/1.1\r\ncontent-length: 9\r\n\r\nhalf",
        )
        return [await talk(server, data) for data in wrong]

    garbage, long, half_head, half_body = with_hosts(catalog, run=run)
    assert garbage.startswith(b"HTTP/1.1 400 ")
    assert long.startswith(b"HTTP/1.1 400 ")
    assert half_head == half_body == b""


def test_a_client_that_leaves_ends_its_stream(catalog: Catalog) -> None:
    host = Host(name="h", model=MODEL, hidden=LLAMA, dialect="openrouter", habits=Habits(queue_median_s=0.3, queue_sigma=0.0))
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 8000})
    call = f"POST /h/v1/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()

    async def run(server: Server) -> int:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(call)
        await writer.drain()
        desk = server.desks["h"]
        async with asyncio.timeout(10):
            while desk.streams == 0:
                await asyncio.sleep(0.01)
            writer.transport.abort()
            while desk.streams:
                await asyncio.sleep(0.01)
        return desk.served

    assert with_hosts(catalog, host, run=run) == 1


def test_the_process_says_its_port_and_stops_on_sigterm() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "app.simulator"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=Path.cwd(), text=True
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        taken = subprocess.run(
            [sys.executable, "-m", "app.simulator", "--port", str(port)],
            check=False,
            capture_output=True,
            cwd=Path.cwd(),
            text=True,
        )
        assert taken.returncode == 1
        assert taken.stderr.startswith("simulator: cannot listen")
        assert taken.stderr.count("\n") == 1
        process.terminate()
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
