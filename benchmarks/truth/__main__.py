"""Our stamps against the truth, and other ways of reading beside them. Writes docs/benchmarks/truth.{md,svg,json}.

    python -m benchmarks.truth [--quick] [--no-write]

A scripted server in a process of its own, on a core of its own, puts the instant of each write into the chunk. Each way
reads it in a fresh process on another core. `--quick` makes fewer rounds; `--no-write` only prints.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme

from benchmarks.truth.page import Row, page, picture

OUT = Path(__file__).parents[2] / "docs" / "benchmarks"
LIMIT_S = 600


@dataclass(frozen=True, kw_only=True)
class Case:
    """One line of the table."""

    way: str
    streams: int
    rounds: int
    chunks: int = 200
    first_ms: int = 200
    tls: bool = False
    blocked: bool = False


def cases(*, quick: bool) -> Iterator[Case]:
    ways = ["kernel", "loop", "lines"]
    if importlib.util.find_spec("openai") is not None:
        ways.append("openai")
    else:
        print("openai is not installed: its loop is left out", file=sys.stderr)
    for way in ways:
        yield Case(way=way, streams=1, rounds=200 if way == "kernel" and not quick else 20, chunks=16, first_ms=100)
        yield Case(way=way, streams=1, rounds=10 if way == "kernel" and not quick else 2)
        for streams, rounds in ((10, 4), (30, 2), (50, 2), (100, 1), (200, 1)):
            yield Case(way=way, streams=streams, rounds=1 if quick else rounds)
    for way in ways:
        for streams in (30, 50):
            yield Case(way=way, streams=streams, rounds=1 if quick else 2, tls=True)
    for way in ways:
        yield Case(way=way, streams=50, rounds=1 if quick else 2, blocked=True)


@contextmanager
def serving(case: Case, certificate: Path, core: int) -> Iterator[str]:
    plan = [str(case.chunks), str(case.first_ms), "10"]
    command = [sys.executable, "-m", "benchmarks.truth.server", *plan, *([str(certificate)] if case.tls else [])]
    with subprocess.Popen(on(core, command), stdout=subprocess.PIPE, text=True) as server:
        try:
            port = server.stdout.readline().strip() if server.stdout else ""
            yield f"https://localhost:{port}/v1" if case.tls else f"http://127.0.0.1:{port}/v1"
        finally:
            server.kill()


def on(core: int, command: list[str]) -> list[str]:
    return ["taskset", "-c", str(core), *command] if shutil.which("taskset") else command


def measured(case: Case, folder: Path, cores: tuple[int, int]) -> dict[str, Any]:
    with serving(case, folder / "server.pem", cores[0]) as url:
        more = [*(["blocked"] if case.blocked else []), *([str(folder / "authority.pem")] if case.tls else [])]
        command = [sys.executable, "-m", "benchmarks.truth.clients", case.way, url, str(case.streams), str(case.rounds), *more]
        answer = folder / "found.json"
        with answer.open("w") as out:
            subprocess.run(on(cores[1], command), stdout=out, check=True, timeout=LIMIT_S)
    return dict(json.loads(answer.read_text()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Our stamps against the truth.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--no-write", action="store_true", help="leave docs/ alone")
    args = parser.parse_args()
    for tool in ("guidellm", "aiperf"):
        found = "is installed, but is not driven by this command yet" if shutil.which(tool) else "is not installed: left out"
        print(f"{tool} {found}", file=sys.stderr)
    usable = sorted(os.sched_getaffinity(0))
    cores = (usable[0], usable[-1])
    rows, load = [], [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as name:
        folder, authority = Path(name), trustme.CA()
        authority.cert_pem.write_to_path(str(folder / "authority.pem"))
        authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
        for case in cases(quick=args.quick):
            try:
                found = measured(case, folder, cores)
            except (subprocess.SubprocessError, ValueError) as error:
                print(f"{case}: {error}", file=sys.stderr)
                continue
            rows.append(Row.of(found, way=case.way, streams=case.streams, tls=case.tls, blocked=case.blocked, size=case.chunks))
            load.append(os.getloadavg()[0])
            print(rows[-1], flush=True)
    if args.no_write:
        return
    OUT.mkdir(exist_ok=True)
    (OUT / "truth.json").write_text(json.dumps([row.json() for row in rows], indent=1) + "\n")
    (OUT / "truth.svg").write_text(picture(rows))
    (OUT / "truth.md").write_text(page(rows, cores=len(usable), load=(min(load), max(load))))


if __name__ == "__main__":
    main()
