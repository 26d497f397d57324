"""What an idle service costs: every role, ten targets every 60 s, on simulated providers; embedded Postgres not counted.

.venv/bin/python benchmarks/idle_cost.py [--seconds 120] [--settle 30]

Prints a line of JSON: CPU as a share of one core and the proportional set size of the service's processes. Exit 1 above 2 %
or 250 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_CPU, MOST_MB = 0.02, 250.0
HZ = os.sysconf("SC_CLK_TCK")
NAMES = ("healthy", "experts")


def config(port: int) -> str:
    """Ten targets on two simulated providers."""
    lines = ["providers:"]
    for name in NAMES:
        lines += [f"  {name}: {{base_url: 'http://127.0.0.1:{port}/{name}/v1', dialect: vllm, max_concurrency: 4}}"]
    lines.append("targets:")
    for number in range(10):
        name, model = (NAMES[number % 2], ("llama-3.1-8b", "qwen3-30b-a3b")[number % 2])
        lines.append(f"  - {{name: t{number}, provider: {name}, model: {model}, every: 60s, recipe: chat-short}}")
    return "\n".join([*lines, "allow_networks: [127.0.0.0/8]", ""])


def family(root: int) -> list[int]:
    """A process and its descendants, without Postgres."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(") ", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = [], [root]
    while left:
        pid = left.pop()
        try:
            if Path(f"/proc/{pid}/exe").readlink().name == "postgres":
                continue
        except OSError:
            continue
        found.append(pid)
        left += children.get(pid, [])
    return found


def cpu_s(pids: list[int]) -> float:
    """User and system time of processes so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / HZ


def pss_mb(pids: list[int]) -> float:
    """Proportional set size, in MB of 10^6 bytes."""
    kib = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                kib += int(line.split()[1])
    return kib * 1024 / 1e6


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


@contextmanager
def running(*arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(40)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--settle", type=float, default=30.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bwi-") as name:
        folder, simulator, port = Path(name), free_port(), free_port()
        folder.chmod(0o755)  # run by root, Postgres has a user of its own
        (folder / "bandwatch.yaml").write_text(config(simulator))
        serve = ("app", "serve", "--config", str(folder / "bandwatch.yaml"), "--port", str(port))
        os.environ["BANDWATCH_DATA"] = str(folder / "data")
        with (
            running("app.simulator", "--port", str(simulator), log=folder / "simulator.log"),
            running(*serve, log=folder / "service.log") as service,
        ):
            time.sleep(options.settle)
            if service.poll() is not None:
                sys.exit((folder / "service.log").read_text())
            pids = family(service.pid)
            before, began = {pid: cpu_s([pid]) for pid in pids}, time.monotonic()
            time.sleep(options.seconds)
            wall = time.monotonic() - began
            each = {pid: cpu_s([pid]) - before[pid] for pid in pids}
            memory = pss_mb(pids)
    share = sum(each.values()) / wall
    found = {
        "cpu_of_a_core": round(share, 4),
        "cpu_of_each": sorted((round(used / wall, 4) for used in each.values()), reverse=True),
        "pss_mb": round(memory, 1),
        "processes": len(pids),
        "seconds": round(wall, 1),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    return int(share > MOST_CPU or memory > MOST_MB or len(pids) < 2)


if __name__ == "__main__":
    sys.exit(main())
