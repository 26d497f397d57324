"""The whole sentence, as a new user sees it: the demo finds the slow provider, tells of it, stops cleanly, and remembers."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 100.0


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="bwd-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    with (folder / "demo.log").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "app", "demo", "--port", str(port), "--data", str(folder), "--no-browser"],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def get(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        text = answer.read().decode()
    return json.loads(text) if "json" in answer.headers["content-type"] else text


def eventually(look: Callable[[], Any], *, within_s: float = PATIENCE_S) -> Any:
    until = time.monotonic() + within_s
    while True:
        try:
            if found := look():
                return found
        except (urllib.error.URLError, ConnectionError, TimeoutError, FileNotFoundError):
            pass
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.5)


def verdicts(port: int) -> dict[str, dict[str, Any]]:
    return {each["target"].split("/")[0]: each for each in get(port, "/api/v1/verdicts")["items"]}


def left_of(folder: Path) -> list[str]:
    """Processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(folder) in command:
                found.append(command)
    return found


@pytest.mark.timeout(240)
def test_the_demo_finds_the_slow_provider_tells_of_it_stops_cleanly_and_remembers(folder: Path) -> None:
    port = free_port()
    demo = start(folder, port)
    try:
        slow = eventually(lambda: (v := verdicts(port).get("slow")) and v["state"] == "below_expectation" and v)
        eventually(lambda: all(verdicts(port)[name]["state"] == "ok" for name in ("healthy", "sram", "experts")))
        messages = eventually(
            lambda: [m for m in map(json.loads, (folder / "webhooks.ndjson").read_text().splitlines()) if "slow" in str(m)]
        )
        metrics = get(port, "/metrics")
        sram = verdicts(port)["sram"]
        runs = len(get(port, "/api/v1/targets/slow/llama-3.1-8b/runs")["items"])
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait(40)
    assert slow["severity"] == "critical"
    assert slow["ratio"] < 0.4
    assert slow["samples"] >= 5
    assert slow["observed"] < slow["expected"] < slow["ceiling"]
    assert sram["basis"] == "layer_law"
    assert messages[0]["verified"] is True
    assert messages[0]["body"]["type"] == "incident.opened"
    assert 'bandwatch_verdict{location="default",state="below_expectation",target="slow/llama-3.1-8b"} 1.0' in metrics
    assert left_of(folder) == []

    again = start(folder, port)
    try:
        later = eventually(lambda: get(port, "/api/v1/targets/slow/llama-3.1-8b/runs")["items"])
    finally:
        again.send_signal(signal.SIGTERM)
        again.wait(40)
    assert len(later) >= runs >= 5
    assert left_of(folder) == []
