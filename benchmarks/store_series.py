"""A target's series over 30 days: from runs, and from rollups.

.venv/bin/python benchmarks/store_series.py [--targets 10] [--every 60] [--days 30] [--repeat 15]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import text
from store_cost import fill

from app.storage.database import Database
from app.storage.embedded import EmbeddedPostgres
from app.storage.migrate import upgrade
from app.storage.partitions import create_ahead
from app.storage.queries.figures import Metric, Stat
from app.storage.queries.series import Span, Wanted, raw_series, rollup_series
from app.storage.queries.session import reading
from app.storage.rollups import roll_up
from app.targets.model import Retention


async def median_ms(repeat: int, ask: Callable[[], Awaitable[object]]) -> float:
    spent = []
    for _ in range(repeat):
        began = time.perf_counter()
        await ask()
        spent.append((time.perf_counter() - began) * 1e3)
    return statistics.median(spent)


async def compare(database: Database, arguments: argparse.Namespace) -> None:
    now = datetime.now(UTC)
    async with reading(database) as session:
        reached = (await session.connection.execute(text("SELECT until FROM rollup_marks WHERE step_s = 300"))).scalar_one()
        for step_s in (3600.0, 10800.0, 86400.0):
            span = Span(since=now - timedelta(days=arguments.days), until=now, step_s=step_s)
            wanted = Wanted(target="p/m1", metric=Metric.TPS, stat=Stat.P50)

            async def raw(span: Span = span) -> object:
                return await raw_series(session, target="p/m1", metric=Metric.TPS, stat=Stat.P50, span=span)

            async def rolled(span: Span = span, wanted: Wanted = wanted) -> object:
                return await rollup_series(session, wanted, span, reached=reached)

            slow, fast = await median_ms(arguments.repeat, raw), await median_ms(arguments.repeat, rolled)
            print(
                f"step {step_s:6g} s: runs {slow:7.1f} ms, rollups {fast:6.1f} ms, {slow / fast:5.1f} times as fast", flush=True
            )


async def main(arguments: argparse.Namespace) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bwb-"))
    server = EmbeddedPostgres(directory=folder)
    await server.start()
    database = Database(dsn=server.url)
    try:
        await upgrade(database)
        await create_ahead(database, now=datetime.now(UTC))
        await fill(database, targets=arguments.targets, every_s=arguments.every, days=arguments.days)
        began, cpu = time.perf_counter(), time.process_time()
        steps = await roll_up(database, retention=Retention(runs_s=400 * 86400.0), now=datetime.now(UTC))
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        runs = arguments.targets * arguments.days * 86400 / arguments.every
        print(f"{runs:.0f} runs rolled up in {steps} steps: {wall:.1f} s, {cpu / runs * 1e6:.0f} us CPU a run", flush=True)
        await compare(database, arguments)
    finally:
        await database.close()
        await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--every", type=float, default=60.0)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--repeat", type=int, default=15)
    asyncio.run(main(parser.parse_args()))
