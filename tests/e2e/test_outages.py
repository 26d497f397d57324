"""The service as a process: the way to its database closed at the start, closed or silent later."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.echoes import Echoes, echoing
from tests.support.outages import Line, Way, line_to
from tests.support.postgres import Cluster

pytestmark = pytest.mark.timeout(300)
RECOVERED_S = 15.0
"""From the end of an outage to a run that began after it."""
ANSWERED_S = 1.0
START_S = 60.0
"""For starting, on a busy machine."""


@dataclass
class Running:
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def get(self, path: str) -> tuple[int, Any, float]:
        began = time.monotonic()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        return status, json.loads(text), time.monotonic() - began

    def runs(self, target: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"/api/v1/targets/{target}/runs?limit=500")[1]["items"]
        return found


def eventually(look: Callable[[], Any], *, within_s: float, what: str) -> float:
    """How long it took until it was so."""
    began = time.monotonic()
    while True:
        with suppress(OSError, KeyError, ValueError):
            if look():
                return time.monotonic() - began
        assert time.monotonic() - began < within_s, f"not within {within_s} s: {what}"
        time.sleep(0.2)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


@contextmanager
def serving(folder: Path, echoes: Echoes, line: Line) -> Iterator[Running]:
    config = {
        "providers": {"p": {"base_url": f"{echoes.url}/fine/v1"}},
        "targets": [{"name": "p/m", "provider": "p", "model": "m", "every": "2s"}],
        "deadlines": {"connect": "1s", "first_token": "1500ms", "stall": "1500ms", "total": "1900ms"},
    }
    (folder / "bandwatch.yaml").write_text(json.dumps(config))
    port = free_port()
    env = {
        **os.environ,
        "BANDWATCH_DATA": str(folder / "data"),
        "BANDWATCH_GRACE": "4s",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    env["BANDWATCH_DATABASE_URL"] = f"postgresql://bandwatch@127.0.0.1:{line.port}/{folder.name}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "app", "serve", "--config", str(folder / "bandwatch.yaml"), "--port", str(port)],
            stdout=log, stderr=log, cwd=folder, env=env, start_new_session=True,
        )  # fmt: skip
    try:
        yield Running(port=port, process=process, log=folder / "log")
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture
def place(postgres: Cluster, tmp_path: Path) -> tuple[Path, str]:
    """A folder that is named like a fresh database, and the server's socket."""
    dsn = postgres.new_database()
    folder = tmp_path / dsn.split("/")[3].split("?")[0]
    folder.mkdir()
    return folder, f"{dsn.split('host=')[1]}/.s.PGSQL.5432"


def quickest(service: Running, path: str, *, asked: int = 3) -> tuple[int, float]:
    """The status, the same each time, and the shortest time to it: the rest is what else the machine has to do."""
    answers = [service.get(path) for _ in range(asked)]
    (status,) = {status for status, _, _ in answers}
    return status, min(seconds for _, _, seconds in answers)


def test_it_lives_without_a_database_and_begins_when_there_is_one_and_goes_on_after_each_outage(
    place: tuple[Path, str],
) -> None:
    folder, server = place
    with echoing() as echoes, line_to(server, way=Way.CLOSED) as line, serving(folder, echoes, line) as service:
        eventually(lambda: service.get("/livez")[0] == 200, within_s=START_S, what="alive without a database")
        assert service.get("/readyz")[0] == 503
        line.set(Way.OPEN)
        eventually(lambda: service.get("/readyz")[0] == 200, within_s=RECOVERED_S, what="ready once there is one")
        eventually(lambda: len(service.runs("p/m")) >= 2, within_s=START_S, what="it probes")
        for way in (Way.CLOSED, Way.SILENT, Way.FORGOTTEN):
            line.set(way)
            status, seconds = quickest(service, "/readyz")
            assert (status, seconds < ANSWERED_S) == (503, True), f"{status} after {seconds} s, {way}"
            status, seconds = quickest(service, "/livez")
            assert (status, seconds < ANSWERED_S) == (200, True), f"{status} after {seconds} s, {way}"
            time.sleep(6)
            began, calls = datetime.now(UTC), len(echoes.at("/fine"))
            line.set(Way.OPEN)
            eventually(lambda: service.get("/readyz")[0] == 200, within_s=RECOVERED_S, what=f"ready after {way}")
            took_s = first_run_after(service, began)
            assert took_s < RECOVERED_S, f"the first run ended {took_s} s after {way}"
            assert len(echoes.at("/fine")) > calls
        assert service.process.poll() is None
        assert {run["outcome"] for run in service.runs("p/m")} == {"ok"}


def first_run_after(service: Running, began: datetime) -> float:
    """Seconds to the end of the first run that was due after that; asked of what is stored, so that a slow page is not counted."""

    def ends() -> list[datetime]:
        runs = service.runs("p/m")
        return [datetime.fromisoformat(run["finished_at"]) for run in runs if datetime.fromisoformat(run["due_at"]) > began]

    eventually(ends, within_s=START_S, what="it probes again")
    return (min(ends()) - began).total_seconds()
