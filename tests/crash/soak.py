"""One service with many targets for long: do memory, descriptors and lateness stay as they are?

    python -m tests.crash.soak [--minutes 60] [--targets 200] [--every 30] [--report docs/benchmarks/soak.md]

Sampled every ten seconds over both processes of the service, Postgres not counted. The first fifth of the time is warm-up; then the
medians of the second fifth and of the last one are compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from sqlalchemy import text

from app.storage.ticks import tick_counts
from tests.crash.fleet import Fleet, Plan, fleet

SAMPLE_S = 10.0
MEMORY_SHARE = 0.05
DESCRIPTORS = 3
"""Connections in use at the moment of a sample come and go."""
LATENESS_S = 0.25
"""The 95th percentile of a minute may wander this much on a machine that has other things to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The service at one moment: proportional memory and open descriptors of its processes."""

    at_s: float
    memory_bytes: int
    descriptors: int
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A figure early and late, and whether that counts as flat."""

    early: float
    late: float
    flat: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    minutes: float
    targets: int
    every_s: float
    runs: int
    missed: int
    memory_mb: Change
    descriptors: Change
    lateness_p95_s: Change

    @property
    def flat(self) -> bool:
        """Is all of it flat?"""
        return self.memory_mb.flat and self.descriptors.flat and self.lateness_p95_s.flat


def parts(figures: Sequence[float]) -> tuple[float, float]:
    """The medians of the second fifth and of the last one."""
    fifth = max(1, len(figures) // 5)
    return statistics.median(figures[fifth : 2 * fifth] or figures), statistics.median(figures[-fifth:])


def looked_at(ships: Fleet, at_s: float) -> Sample | None:
    """One look; None while a process is not there."""
    both = [process for process in (ships.replicas[0].parent(), ships.replicas[0].child()) if process is not None]
    try:
        return Sample(
            at_s=at_s,
            memory_bytes=sum(process.memory_full_info().pss for process in both),
            descriptors=sum(process.num_fds() for process in both),
            processes=len(both),
        )
    except psutil.NoSuchProcess:
        return None


async def soak(plan: Plan, folder: Path) -> tuple[Outcome, list[Sample]]:
    """Run for the time of the plan."""
    samples: list[Sample] = []
    async with fleet(plan, folder) as ships:
        await ships.replicas[0].start()
        try:
            async with asyncio.timeout(plan.seconds + 120):
                while len(samples) * SAMPLE_S < plan.seconds:
                    await asyncio.sleep(SAMPLE_S)
                    if (sample := looked_at(ships, len(samples) * SAMPLE_S)) is not None and sample.processes == 2:
                        samples.append(sample)
        finally:
            await ships.replicas[0].stop()
        async with ships.database.read() as connection:
            late = (
                await connection.execute(
                    text(
                        "SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - due_at)) "
                        "FROM runs GROUP BY date_trunc('minute', due_at) ORDER BY date_trunc('minute', due_at)"
                    )
                )
            ).scalars()
            lateness = [float(each) for each in late]
            runs = (await connection.execute(text("SELECT count(*) FROM runs"))).scalar_one()
            missed = (await tick_counts(connection)).get("missed", 0)
    memory = parts([sample.memory_bytes / 1e6 for sample in samples])
    descriptors = parts([sample.descriptors for sample in samples])
    lag = parts(lateness)
    outcome = Outcome(
        minutes=plan.seconds / 60,
        targets=plan.targets,
        every_s=plan.every_s,
        runs=runs,
        missed=missed,
        memory_mb=Change(early=memory[0], late=memory[1], flat=memory[1] <= memory[0] * (1 + MEMORY_SHARE)),
        descriptors=Change(early=descriptors[0], late=descriptors[1], flat=descriptors[1] <= descriptors[0] + DESCRIPTORS),
        lateness_p95_s=Change(early=lag[0], late=lag[1], flat=lag[1] <= lag[0] + LATENESS_S),
    )
    return outcome, samples


def report(outcome: Outcome) -> str:
    """The page of figures."""
    rows = {
        "memory of both processes (PSS), MB": outcome.memory_mb,
        "open descriptors": outcome.descriptors,
        "95th percentile of a minute's lateness, s": outcome.lateness_p95_s,
    }
    lines = [
        "# Soak",
        "",
        'Made by `make soak` (`ARGS="--minutes 15"` for another duration): `bandwatch serve` with all roles on healthy simulated targets.',
        "Sampled every ten seconds, Postgres not counted; the first fifth is warm-up, and the medians of the second and the last fifth",
        "are compared ([tests/crash/soak.py](../../tests/crash/soak.py)).",
        "",
        (
            f"{outcome.minutes:g} minutes, {outcome.targets} targets every {outcome.every_s:g} s, {outcome.runs} runs, "
            f"{outcome.missed} ticks missed, one run."
        ),
        "",
        "| figure | second fifth | last fifth | flat |",
        "| --- | ---: | ---: | --- |",
        *(f"| {name} | {row.early:.2f} | {row.late:.2f} | {'yes' if row.flat else 'no'} |" for name, row in rows.items()),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--targets", type=int, default=200)
    parser.add_argument("--every", type=float, default=30.0)
    parser.add_argument("--report", type=Path, default=None)
    parser.add_argument("--samples", type=Path, default=None, help="write every sample to this file, as JSON")
    options = parser.parse_args()
    plan = Plan(seconds=options.minutes * 60, targets=options.targets, every_s=options.every, replicas=1)
    folder = Path(tempfile.mkdtemp(prefix="bwk-"))
    folder.chmod(0o755)
    try:
        outcome, samples = asyncio.run(soak(plan, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({**asdict(outcome), "flat": outcome.flat}, indent=2))
    if options.samples is not None:
        options.samples.write_text(json.dumps([asdict(sample) for sample in samples]))
    if options.report is not None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(report(outcome))
    return 0 if outcome.flat else 1


if __name__ == "__main__":
    sys.exit(main())
