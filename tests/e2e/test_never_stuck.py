"""Never stuck: Postgres away at the start or later, a worker killed in the middle of probes, one signal and two."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from app.storage.database import raw_dsn
from app.storage.embedded import EmbeddedPostgres

CONFIG = """\
providers:
  p: {{base_url: "http://127.0.0.1:{port}/v1", max_concurrency: 4}}
recipes:
  short: {{prompt: chat, prompt_tokens: 20, output_tokens: 8}}
targets:
  - {{name: p/a, provider: p, model: m, every: 4s, recipe: short}}
  - {{name: p/b, provider: p, model: m, every: 4s, recipe: short}}
"""


@dataclass
class Slow:
    """A provider that begins each answer at once and ends it `takes_s` later."""

    takes_s: float = 1.5
    calls: int = 0
    open_now: int = 0
    port: int = 0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_now += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
            self.calls += 1
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            for n in range(8):
                piece = {
                    "choices": [{"index": 0, "delta": {"content": f"w{n} "}, "finish_reason": "length" if n == 7 else None}]
                }
                writer.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
                await writer.drain()
                await asyncio.sleep(self.takes_s / 8)
            usage = {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28}}
            writer.write(b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n")
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_now -= 1
            writer.close()

    @contextmanager
    def serving(self) -> Iterator["Slow"]:
        async def start() -> asyncio.Server:
            return await asyncio.start_server(self.answer, "127.0.0.1", 0)

        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        server = asyncio.run_coroutine_threadsafe(start(), self._loop).result(10)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._end(server), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)
            self._loop.close()

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@dataclass
class Home:
    """A folder with a configuration, and the services that run in it."""

    folder: Path
    port: int = 0
    environment: dict[str, str] = field(default_factory=dict)

    def configure(self, provider: Slow) -> None:
        (self.folder / "bandwatch.yaml").write_text(CONFIG.format(port=provider.port))

    def start(self, **environment: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "app",
                    "serve",
                    "--config",
                    str(self.folder / "bandwatch.yaml"),
                    "--port",
                    str(self.port),
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "BANDWATCH_DATA": str(self.folder),
                    "BANDWATCH_NEUTRAL_ADDRESSES": "off",
                    **environment,
                },
            )

    def asked(self, path: str) -> tuple[int, float]:
        """Status (0: no answer) and seconds."""
        began = time.monotonic()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                status = int(answer.status)
        except urllib.error.HTTPError as error:
            status = error.code
        except OSError:
            status = 0
        return status, time.monotonic() - began

    def left(self) -> list[psutil.Process]:
        """Processes of the service that are still there."""
        return [
            process
            for process in psutil.process_iter(["cmdline"])
            if any(str(self.folder) in part for part in process.info["cmdline"] or []) and process.pid != os.getpid()
        ]


def eventually(look: Callable[[], Any], *, within_s: float = 60.0) -> float:
    """Seconds until it was so."""
    began = time.monotonic()
    while not look():
        assert time.monotonic() - began < within_s, "it did not happen in time"
        time.sleep(0.1)
    return time.monotonic() - began


def fetch(dsn: str, query: str) -> Any:
    async def main() -> Any:
        connection = await asyncpg.connect(raw_dsn(dsn))
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    return asyncio.run(main())


@pytest.fixture
def home() -> Iterator[Home]:
    import socket

    folder = Path(tempfile.mkdtemp(prefix="bwn-"))
    folder.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    made = Home(folder=folder, port=port)
    yield made
    for process in made.left():
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def provider(home: Home) -> Iterator[Slow]:
    with Slow().serving() as slow:
        home.configure(slow)
        yield slow


@pytest.fixture
def server(home: Home) -> Iterator[EmbeddedPostgres]:
    made = EmbeddedPostgres(directory=home.folder / "db")
    asyncio.run(made.start())
    yield made
    asyncio.run(made.stop())


@pytest.mark.timeout(240)
def test_postgres_away_at_the_start_and_in_the_middle_stops_nothing_for_good(
    home: Home, provider: Slow, server: EmbeddedPostgres
) -> None:
    asyncio.run(server.stop())
    service = home.start(BANDWATCH_DATABASE_URL=server.url)
    try:
        eventually(lambda: home.asked("/livez")[0] == 200)
        answers = [home.asked("/readyz") for _ in range(3)]
        assert {status for status, _ in answers} == {503}
        assert min(took_s for _, took_s in answers) < 1.0
        asyncio.run(server.start())
        assert eventually(lambda: home.asked("/readyz")[0] == 200) < 15.0
        eventually(lambda: fetch(server.url, "SELECT count(*) FROM runs") > 0)

        provider.takes_s = 5.0
        eventually(lambda: provider.open_now > 0)
        time.sleep(1.0)
        asyncio.run(server.stop())
        eventually(lambda: any((home.folder / "spool").glob("*.json")))
        assert home.asked("/livez")[0] == 200
        assert home.asked("/readyz")[0] == 503
        spooled = len(list((home.folder / "spool").glob("*.json")))
        provider.takes_s = 0.5
        asyncio.run(server.start())
        before = fetch(server.url, "SELECT count(*) FROM runs")
        assert eventually(lambda: home.asked("/readyz")[0] == 200) < 15.0
        eventually(lambda: not any((home.folder / "spool").glob("*.json")))
        eventually(lambda: fetch(server.url, "SELECT count(*) FROM runs") >= before + spooled + 2)
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0
    assert fetch(server.url, "SELECT count(*) FROM runs WHERE finished_at < started_at") == 0


@pytest.mark.timeout(240)
def test_a_worker_killed_in_the_middle_of_probes_loses_no_tick_and_stores_none_twice(
    home: Home, provider: Slow, server: EmbeddedPostgres
) -> None:
    service = home.start(BANDWATCH_DATABASE_URL=server.url)
    try:
        eventually(lambda: provider.open_now > 0)
        (worker,) = psutil.Process(service.pid).children()
        worker.kill()
        killed_at = fetch(server.url, "SELECT now()::text")
        eventually(lambda: fetch(server.url, f"SELECT count(*) FROM runs WHERE due_at > '{killed_at}'") >= 2)
        stuck = "SELECT count(*) FROM pgqueuer WHERE status = 'picked' AND heartbeat < now() - interval '15 s'"
        eventually(
            lambda: (
                fetch(server.url, "SELECT count(*) FROM claims WHERE result IS NULL AND claimed_at < now() - interval '20 s'")
                == 0
            )
        )
        eventually(lambda: fetch(server.url, stuck) == 0)
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0
    ticks = "SELECT count(*) - count(DISTINCT (due_at, target, location)) FROM runs"
    assert fetch(server.url, ticks) == 0
    assert provider.calls <= fetch(server.url, "SELECT sum(attempts) FROM claims")


@pytest.mark.timeout(240)
def test_one_signal_lets_running_probes_finish_and_a_second_one_ends_all_at_once(
    home: Home, provider: Slow, server: EmbeddedPostgres
) -> None:
    provider.takes_s = 3.0
    service = home.start(BANDWATCH_DATABASE_URL=server.url)
    eventually(lambda: provider.open_now > 0)
    stored = fetch(server.url, "SELECT count(*) FROM runs")
    service.send_signal(signal.SIGTERM)
    assert service.wait(60) == 0
    assert fetch(server.url, "SELECT count(*) FROM runs") > stored
    assert fetch(server.url, "SELECT count(*) FROM runs WHERE outcome <> 'ok'") == 0

    provider.takes_s = 60.0
    service = home.start(BANDWATCH_DATABASE_URL=server.url)
    eventually(lambda: provider.open_now > 0)
    service.send_signal(signal.SIGTERM)
    time.sleep(1.0)
    assert service.poll() is None
    service.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert service.wait(30) == 1
    assert time.monotonic() - began < 10.0
    eventually(lambda: not [p for p in home.left() if "serve" in p.cmdline()], within_s=20.0)


@pytest.mark.timeout(240)
def test_probes_that_do_not_end_within_the_grace_are_cancelled_and_are_nobodys_failure(
    home: Home, provider: Slow, server: EmbeddedPostgres
) -> None:
    provider.takes_s = 60.0
    service = home.start(BANDWATCH_DATABASE_URL=server.url, BANDWATCH_GRACE="2s")
    eventually(lambda: provider.open_now > 0)
    service.send_signal(signal.SIGTERM)
    assert service.wait(40) == 0
    assert fetch(server.url, "SELECT count(*) FROM runs WHERE outcome = 'provider_error'") == 0
    assert not [process for process in home.left() if "serve" in process.cmdline()]
