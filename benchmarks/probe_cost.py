"""What one probe of 128 chunks costs the worker, everything included: call, stamps, parsing, judging, storing, announcing.

.venv/bin/python benchmarks/probe_cost.py [--seconds 60] [--targets 20] [--every 2]

A real service on simulated providers; the CPU time of its probing process over the runs that it stored meanwhile, idle
loops not subtracted. Prints a line of JSON. Exit 1 above 20 ms a probe.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from idle_cost import cpu_s, family, free_port, running

MOST_S = 0.020
RUNS = re.compile(r"^bandwatch_probe_runs_total\{.*outcome=\"(\w+)\".*\} (\S+)$", re.MULTILINE)


def config(port: int, targets: int, every_s: float) -> str:
    """Targets of one simulated provider, as many at once as want."""
    base = f"http://127.0.0.1:{port}/healthy/v1"
    lines = [
        f"providers: {{healthy: {{base_url: '{base}', dialect: vllm, max_concurrency: {targets}}}}}",
        "targets:",
    ]
    deployment = "{model_spec: Llama-3.1-8B-Instruct, hardware: H100-SXM-80GB, devices: 1, stack: vllm}"
    for number in range(targets):
        name = f"name: t{number}, provider: healthy, model: meta-llama/Llama-3.1-8B-Instruct"
        lines.append(f"  - {{{name}, every: {every_s:g}s, recipe: chat-short, deployment: {deployment}}}")
    return "\n".join([*lines, ""])


def stored(port: int) -> dict[str, float]:
    """Runs by outcome so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for outcome, value in RUNS.findall(text):
        found[outcome] = found.get(outcome, 0.0) + float(value)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--settle", type=float, default=20.0)
    parser.add_argument("--targets", type=int, default=20)
    parser.add_argument("--every", type=float, default=2.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bwp-") as name:
        folder, simulator, port = Path(name), free_port(), free_port()
        folder.chmod(0o755)  # run by root, Postgres has a user of its own
        (folder / "bandwatch.yaml").write_text(config(simulator, options.targets, options.every))
        os.environ["BANDWATCH_DATA"] = str(folder / "data")
        serve = ("app", "serve", "--config", str(folder / "bandwatch.yaml"), "--port", str(port))
        with (
            running("app.simulator", "--port", str(simulator), log=folder / "simulator.log"),
            running(*serve, log=folder / "service.log") as service,
        ):
            time.sleep(options.settle)
            (probing,) = [pid for pid in family(service.pid) if pid != service.pid]
            runs, cpu = stored(port), cpu_s([probing])
            time.sleep(options.seconds)
            after, used = stored(port), cpu_s([probing]) - cpu
    done = sum(after.values()) - sum(runs.values())
    ok = after.get("ok", 0.0) - runs.get("ok", 0.0)
    found = {
        "cpu_ms_a_probe": round(used / done * 1e3, 2),
        "probes": int(done),
        "ok": int(ok),
        "probes_per_s": round(done / options.seconds, 2),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    return int(used / done > MOST_S or ok < 0.99 * done)


if __name__ == "__main__":
    sys.exit(main())
