"""Our figures beside those that a real vLLM keeps of itself, over the same requests.

.venv/bin/python benchmarks/against_vllm.py URL MODEL [--probes 20] [--seconds 600] [--every 5] [--write PAGE]

vLLM's truth is the change of `_sum / _count` of its own histograms. First `bandwatch probe -n`, then a `bandwatch serve` for
some minutes. Exit 1 when a run failed, a token is missing, or a mean differs by more than 10 % and 3 ms (TPOT: by 2 %).
Pin vLLM to one core; this takes the first.
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
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

TTFT = "vllm:time_to_first_token_seconds"
TPOT = "vllm:request_time_per_output_token_seconds"
TOKENS = "vllm:generation_tokens_total"
TARGET = "vllm/tiny"


@dataclass(frozen=True)
class Reading:
    """Sums and counts of vLLM's own figures."""

    values: dict[str, float]

    @classmethod
    def of(cls, url: str) -> Reading:
        with urllib.request.urlopen(url.removesuffix("/v1") + "/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        found: dict[str, float] = {}
        for line in lines:
            if not line.startswith("#") and " " in line:
                name, value = line.rsplit(" ", 1)
                bare = name.split("{", 1)[0]
                found[bare] = found.get(bare, 0.0) + float(value)
        return cls(found)

    def mean_since(self, before: Reading, name: str) -> float:
        count = self.values[f"{name}_count"] - before.values[f"{name}_count"]
        return (self.values[f"{name}_sum"] - before.values[f"{name}_sum"]) / count

    def count_since(self, before: Reading, name: str) -> float:
        return self.values[name] - before.values[name]


@dataclass(frozen=True)
class Comparison:
    """One way of measuring, beside vLLM."""

    way: str
    runs: list[dict[str, Any]]
    before: Reading
    after: Reading

    @property
    def ok(self) -> int:
        return sum(run["outcome"] == "ok" for run in self.runs)

    def ours(self, name: str) -> float:
        return fmean(run[name] for run in self.runs if run["outcome"] == "ok")

    def row(self) -> str:
        ttft, theirs = self.ours("ttft_s"), self.after.mean_since(self.before, TTFT)
        tpot, server = self.ours("tpot_s"), self.after.mean_since(self.before, TPOT)
        tokens = sum(run["output_tokens"] or 0 for run in self.runs)
        differs = f"{tpot / server - 1:+.2%}"
        return (
            f"| {self.way} | {self.ok} of {len(self.runs)} | {tokens} / {self.after.count_since(self.before, TOKENS):.0f} "
            f"| {ttft * 1e3:.2f} / {theirs * 1e3:.2f} ms | {tpot * 1e3:.3f} / {server * 1e3:.3f} ms | {differs} |"
        )

    def faults(self) -> Iterator[str]:
        if self.ok != len(self.runs) or not self.runs:
            yield f"{self.way}: {len(self.runs) - self.ok} of {len(self.runs)} runs failed"
            return
        ttft, theirs = self.ours("ttft_s"), self.after.mean_since(self.before, TTFT)
        if abs(ttft - theirs) > max(0.003, 0.1 * theirs):
            yield f"{self.way}: TTFT {ttft:.4f} s, vLLM {theirs:.4f} s"
        tpot, server = self.ours("tpot_s"), self.after.mean_since(self.before, TPOT)
        if abs(tpot / server - 1) > 0.02:
            yield f"{self.way}: TPOT {tpot:.5f} s, vLLM {server:.5f} s"
        tokens = sum(run["output_tokens"] for run in self.runs)
        if tokens != self.after.count_since(self.before, TOKENS):
            yield f"{self.way}: {tokens} tokens, vLLM {self.after.count_since(self.before, TOKENS):.0f}"


def by_probe(url: str, model: str, count: int) -> Comparison:
    command = [sys.executable, "-m", "app", "probe", url, "--model", model, "--json"]
    subprocess.run([*command, "-n", "2"], check=False, capture_output=True)  # the first calls of a fresh vLLM compile
    before = Reading.of(url)
    done = subprocess.run([*command, "-n", str(count)], check=False, capture_output=True, text=True)
    return Comparison(f"`bandwatch probe -n {count}`", json.loads(done.stdout)["runs"], before, Reading.of(url))


def by_serve(url: str, model: str, *, seconds: float, every: float) -> Comparison:
    with tempfile.TemporaryDirectory(prefix="bwv-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        config = folder / "bandwatch.yaml"
        config.write_text(
            f'providers: {{vllm: {{base_url: "{url}", dialect: vllm}}}}\n'
            f"targets: [{{name: {TARGET}, provider: vllm, model: {model}, every: {every:g}s}}]\n"
        )
        before = Reading.of(url)
        with service(folder, config) as port:
            time.sleep(seconds)
            wait_for_quiet(url)
            after = Reading.of(url)
            runs = stored(port)
    return Comparison(f"`bandwatch serve`, {seconds / 60:g} min, every {every:g} s", runs, before, after)


def wait_for_quiet(url: str) -> None:
    """Until no request has been running for half a second: then what is stored and what is counted are the same."""
    quiet = 0
    while quiet < 5:
        quiet = 0 if Reading.of(url).values.get("vllm:num_requests_running") else quiet + 1
        time.sleep(0.1)


@contextmanager
def service(folder: Path, config: Path) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = int(door.getsockname()[1])
    command = [sys.executable, "-m", "app", "serve", "--config", str(config), "--port", str(port), "--data", str(folder / "d")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def stored(port: int) -> list[dict[str, Any]]:
    """Every stored run, over all pages."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        address = f"http://127.0.0.1:{port}/api/v1/targets/{TARGET}/runs?limit=200{cursor}"
        with urllib.request.urlopen(address, timeout=10) as answer:
            page = json.loads(answer.read())
        found += page["items"]
        if not page.get("next_cursor"):
            return found
        cursor = f"&cursor={page['next_cursor']}"


def page(comparisons: list[Comparison], arguments: list[str]) -> str:
    version = "A real vLLM 0.32 on one core of this machine's CPU, tiny Llama of random weights"
    return "\n".join(
        [
            "# Beside a real vLLM",
            "",
            f"{version}; the prober on the other core.",
            "`chat-short`: 128 output tokens by `ignore_eos`, temperature 0. The second figure of each pair is vLLM's own: the",
            f"change of `_sum / _count` of its histograms over the same requests (`{TTFT}`,",
            f"`{TPOT}`), and of `{TOKENS}`.",
            "",
            "| measured by | ok | tokens, ours / vLLM's | mean TTFT | mean time per output token | TPOT differs by |",
            "| --- | --- | --- | --- | --- | --- |",
            *(each.row() for each in comparisons),
            "",
            "Our TTFT is longer by what lies between the server's stamps and ours: its HTTP front end, and the loopback twice.",
            "",
            "    " + " ".join(["python", "benchmarks/against_vllm.py", *arguments]),
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--probes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--every", type=float, default=5.0)
    parser.add_argument("--write", type=Path, default=None)
    options = parser.parse_args()
    os.sched_setaffinity(0, {0})
    comparisons = [by_probe(options.url, options.model, options.probes)]
    if options.seconds:
        comparisons.append(by_serve(options.url, options.model, seconds=options.seconds, every=options.every))
    text = page(comparisons, sys.argv[1:])
    sys.stdout.write(text)
    if options.write is not None:
        options.write.write_text(text)
    faults = [fault for each in comparisons for fault in each.faults()]
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
