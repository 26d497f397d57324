"""What the calculator costs: as a function, as a process, and the search over undeclared machines.

Times are of CPU (user + system, the least of several runs), because a busy machine stretches the clock on the wall; its best
is printed beside it for the process. Bounds: 0.2 ms as a function, 150 ms as a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from timeit import repeat

from app.catalog.load import load_catalog
from app.expectation.expect import Deployment, expect
from app.expectation.feasible import feasible

ROOT = Path(__file__).parents[1]
RUNS = 12
COMMAND = [sys.executable, "-m", "app", "expect", "--model-spec", "gpt-oss-120b", "--hardware", "H100-SXM-80GB", "--json"]


def process(command: list[str]) -> tuple[float, float]:
    """Least CPU and least wall seconds of several runs."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    cpu, wall = [], []
    for _ in range(RUNS):
        before, begin = os.times(), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env=environment, cwd=ROOT)
        after = os.times()
        wall.append(time.perf_counter() - begin)
        cpu.append(after.children_user - before.children_user + after.children_system - before.children_system)
    return min(cpu), min(wall)


def call_ms(statement: object, number: int) -> float:
    """Milliseconds of CPU of one call, the least of several rounds."""
    rounds = repeat(statement, timer=time.process_time, number=number, repeat=5)  # type: ignore[call-overload]  # a callable
    return float(1e3 * min(rounds) / number)


def main() -> int:
    begin = time.process_time()
    catalog = load_catalog()
    print(f"catalogue read in {1e3 * (time.process_time() - begin):.1f} ms of CPU; rows are made when they are asked for")
    declared = Deployment(model_spec="gpt-oss-120b", hardware="H100-SXM-80GB", devices=1)
    function_ms = call_ms(lambda: expect(declared, catalog=catalog), 500)
    print(f"expect, declared deployment: {function_ms:.3f} ms (at most 0.2)")
    unknown = Deployment(model_spec="gpt-oss-120b")
    print(f"expect, nothing declared (a range): {call_ms(lambda: expect(unknown, catalog=catalog), 5):.1f} ms")
    model = catalog.model("gpt-oss-120b")
    print(f"feasible set of an observed speed: {call_ms(lambda: feasible(model, 300.0, catalog=catalog), 3):.1f} ms")
    cpu_s, wall_s = process(COMMAND)
    bare_cpu_s, bare_wall_s = process([sys.executable, "-c", "pass"])
    print(f"bandwatch expect as a process: {1e3 * cpu_s:.0f} ms of CPU, {1e3 * wall_s:.0f} ms by the clock (at most 150)")
    print(f"  of which the interpreter alone: {1e3 * bare_cpu_s:.0f} ms of CPU, {1e3 * bare_wall_s:.0f} ms by the clock")
    return 0 if function_ms <= 0.2 and min(cpu_s, wall_s) <= 0.150 else 1


if __name__ == "__main__":
    sys.exit(main())
