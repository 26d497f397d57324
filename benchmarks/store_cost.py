"""What storing one result costs: worker CPU and results a second, on an embedded Postgres with a week of history.

.venv/bin/python benchmarks/store_cost.py [--targets 20] [--every 60] [--days 7] [--records 2000] [--workers 1 8]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from sqlalchemy import text

from app.clock import SystemClock
from app.expectation.model import Confidence
from app.measurement.model import ErrorClass, Gaps, Measurement, Outcome, Phases, Reliable, Run, TokenSource
from app.storage.database import Database
from app.storage.embedded import EmbeddedPostgres
from app.storage.ledger import Ledger
from app.storage.migrate import upgrade
from app.storage.partitions import create, create_ahead
from app.targets.model import Provider, Recipe, Target, Thresholds
from app.verdict.model import Advance, Severity, State, Verdict
from app.verdict.outbox import Decision, Past

HISTORY = """
INSERT INTO runs (id, due_at, target, location, provider, model, recipe, started_at, finished_at, outcome, error_class,
  connection, ttft_s, ttft_reliable, decode_tps, tpot_s, tps_reliable, e2e_s, gap_max_s, connect_s, tls_s, output_tokens,
  contaminated, has_recording, measurement, read_stamps_s, read_tokens)
SELECT md5(random()::text), at, 'p/m' || t, 'default', 'p', 'm', 'chat-short', at, at + interval '1 s', 'ok', 'none', 'cold',
  0.2 + random() / 10, true, 100 + random() * 10, 0.01, true, 1.4, 0.05, 0.01, 0.02, 128, false, false,
  '{"outcome": "ok", "error_class": "none"}', array_fill(0.5::float8, ARRAY[128]), array_fill(1.0::real, ARRAY[128])
FROM generate_series(1, :targets) t, generate_series(CAST(:since AS timestamptz), CAST(:until AS timestamptz), :step) at
"""


def target(number: int, every_s: float) -> Target:
    return Target(
        name=f"p/m{number}",
        provider=Provider(name="p", base_url="http://127.0.0.1:1/v1"),
        model="m",
        every_s=every_s,
        recipe=Recipe(name="chat-short"),
    )


def run(number: int, at: datetime) -> Run:
    return Run(
        id=uuid4().hex,
        target=f"p/m{number}",
        location="default",
        due_at=at,
        started_at=at,
        finished_at=at + timedelta(seconds=1.4),
        provider="p",
        model="m",
        recipe="chat-short",
        measurement=Measurement(
            outcome=Outcome.OK,
            error_class=ErrorClass.NONE,
            http_status=200,
            finish_reason="length",
            phases=Phases(dns_s=0.001, connect_s=0.01, tls_s=0.02, send_s=0.0001, wait_s=0.15),
            presend_s=0.03,
            ttft_s=0.21,
            ttft_visible_s=0.21,
            decode_tps=104.0,
            tpot_s=1 / 104,
            e2e_s=1.4,
            e2e_tps=91.0,
            total_s=1.43,
            gaps=Gaps(p50_s=0.009, p95_s=0.011, p99_s=0.02, max_s=0.05),
            output_tokens=128,
            prompt_tokens=61,
            token_source=TokenSource.USAGE,
            output_reads=128,
            output_events=128,
            reliable=Reliable(ttft=True, tps=True),
        ),
        read_stamps_s=tuple(0.21 + n * 0.0095 for n in range(128)),
        read_tokens=(1.0,) * 128,
    )


def decide(past: Past) -> Decision:
    newest = past.samples[-1]
    verdict = Verdict(
        target=past.previous.target if past.previous else "p/m1",
        location="default",
        state=State.OK,
        severity=Severity.NONE,
        since=newest.started_at,
        checked_at=newest.started_at,
        samples=len(past.samples),
        confidence=Confidence.HIGH,
        explanation="105 tokens/s, 97 % of the 108 that its machine should reach.",
    )
    return Decision(verdict=verdict, advance=Advance(trail=past.trail))


async def fill(database: Database, *, targets: int, every_s: float, days: int) -> None:
    now = datetime.now(UTC)
    for back in range(days + 1, 0, -1):
        await create(database, (now - timedelta(days=back)).date())
    async with database.write() as connection:
        step = timedelta(seconds=every_s)
        span = {"since": now - timedelta(days=days), "until": now - step, "step": step}
        await connection.execute(text(HISTORY), {"targets": targets, **span})
    raw = await database.connect_raw()
    await raw.execute("VACUUM ANALYZE runs", timeout=300)
    await raw.close()


async def measure(ledger: Ledger, arguments: argparse.Namespace, workers: int) -> str:
    targets = [target(number, arguments.every) for number in range(1, arguments.targets + 1)]
    start = datetime.now(UTC) + timedelta(minutes=workers)
    todo = iter([(n % len(targets), start + timedelta(milliseconds=n)) for n in range(arguments.records)])

    async def work() -> None:
        for index, at in todo:
            await ledger.record(run(index + 1, at), target=targets[index], decide=decide)

    cpu, wall = time.process_time(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    n = arguments.records
    return f"{workers:2d} at once: {cpu / n * 1e3:.2f} ms CPU and {wall / n * 1e3:.2f} ms a result, {n / wall:.0f} results/s"


async def main(arguments: argparse.Namespace) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bwb-"))
    server = EmbeddedPostgres(directory=folder)
    await server.start()
    database = Database(dsn=server.url, pool=16)
    try:
        await upgrade(database)
        await create_ahead(database, now=datetime.now(UTC))
        await fill(database, targets=arguments.targets, every_s=arguments.every, days=arguments.days)
        ledger = Ledger(database=database, clock=SystemClock(), thresholds=Thresholds)
        for workers in arguments.workers:
            print(await measure(ledger, arguments, workers), flush=True)
    finally:
        await database.close()
        await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=20)
    parser.add_argument("--every", type=float, default=60.0)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8])
    from asyncio import Runner

    import uvloop

    with Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(parser.parse_args()))
