"""Three replicas on one Postgres, killed for a while; then the accounts.

python -m tests.crash.fleet [--seconds 600] [--targets 50] [--every 15] [--seed 1] [--report docs/benchmarks/crash.md]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import psutil

from app.catalog.load import load_catalog
from app.dispatch.plan import key_of
from app.storage.database import Database
from app.storage.embedded import EmbeddedPostgres
from app.storage.migrate import upgrade
from app.storage.partitions import create_ahead
from app.storage.schedule import ScheduleMark
from app.targets.grid import Walk
from app.targets.load import load_config
from tests.crash.accounts import Accounts, settle
from tests.crash.journal import Journal
from tests.crash.lookout import Lookout
from tests.crash.replica import POINTS
from tests.crash.report import Plan, report
from tests.crash.ship import Replica, berth
from tests.crash.surroundings import Providers, Receiver, config, providers, receiving

FIRE_S = 8.0
"""How long a sentence may wait for its process to come by the point."""
OVERDUE_S = 15.0
"""Longer than a busy machine needs to start a courier after all three were killed."""
CONNECTIONS = 30
"""Of one replica, at most: the pools of both its processes, the queue's, the election and who starts while the last one's still close."""


@dataclass(kw_only=True)
class Fleet:
    """Everything together."""

    plan: Plan
    folder: Path
    server: EmbeddedPostgres
    database: Database
    replicas: list[Replica]
    providers: Providers
    receiver: Receiver
    journal: Journal
    rng: Random
    begun: datetime
    deaths: Counter[str] = field(default_factory=Counter)
    lookout: Lookout = field(init=False)

    def __post_init__(self) -> None:
        self.lookout = Lookout(database=self.database, config=self.folder / "bandwatch.yaml")

    async def live(self) -> None:
        """Let them live, fail and die for the time of the plan; then let what is left be finished in peace."""
        keepers = [asyncio.create_task(replica.keep()) for replica in self.replicas]
        weather, lookout = asyncio.create_task(self._weather()), asyncio.create_task(self.lookout.keep())
        try:
            await self._until_working()
            await self._kill()
        finally:
            weather.cancel()
            self.providers.set_down(set())
            self.receiver.patient = True
            await asyncio.sleep(self.plan.every_s)
            for task in (*keepers, lookout):
                task.cancel()
            ends = await asyncio.gather(*keepers, weather, lookout, return_exceptions=True)
        assert not [end for end in ends if isinstance(end, AssertionError)], ends
        await self._finish()

    async def _until_working(self) -> None:
        """Until a run is stored."""
        async with asyncio.timeout(120):
            while await self._number("SELECT count(*) FROM runs") == 0:
                await asyncio.sleep(0.3)

    async def _weather(self) -> None:
        """A quarter of the providers is down at any time."""
        names, number = self.providers.names, 0
        while True:
            self.providers.set_down({name for index, name in enumerate(names) if (index + number) % 4 == 0})
            number += 1
            await asyncio.sleep(self.plan.outage * self.plan.every_s)

    async def _kill(self) -> None:
        began = time.monotonic()
        restarts = [(n + 1) / (self.plan.restarts + 1) for n in range(self.plan.restarts)]
        freezes = [0.4]
        turn = 0
        while (share := (time.monotonic() - began) / self.plan.seconds) < 1 or (share < 1.5 and self._too_few()):
            if restarts and share >= restarts[0]:
                restarts.pop(0)
                self.deaths["postgres restarted"] += 1
                self.journal.hit_all()
                await self.server.restart()
            elif freezes and share >= freezes[0]:
                freezes.pop(0)
                await self._freeze()
            elif turn % 4 == 3:
                self._kill_at_random()
            else:
                await self._sentence(POINTS[turn % 4])
            turn += 1
            await asyncio.sleep(self.plan.pause_s)

    def _too_few(self) -> bool:
        return any(self.deaths[point] < self.plan.each_point for point in POINTS)

    def _kill_at_random(self) -> None:
        replica = self.rng.choice(self.replicas)
        parent, child = replica.parent(), replica.child()
        which, victim = self.rng.choice([("a whole replica, at random", parent), ("a worker, at random", child)])
        if victim is not None:
            self.journal.hit(*(process.pid for process in {victim, child} if process is not None))
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
                self.deaths[which] += 1

    async def _sentence(self, point: str) -> None:
        """Sentence all children, let the first that comes by the point die, and pardon the others."""
        doomed = {child.pid for replica in self.replicas if (child := replica.child()) is not None}
        files = {pid: self.folder / "fate" / f"{pid}.{point}" for pid in doomed}
        for file in files.values():
            file.touch()
        until = time.monotonic() + FIRE_S
        while time.monotonic() < until and all(file.exists() for file in files.values()):
            await asyncio.sleep(0.02)
        for file in files.values():
            if file.exists():
                file.unlink(missing_ok=True)
            else:
                self.deaths[point] += 1

    async def _freeze(self) -> None:
        """The replica that schedules, for preference: SIGSTOP, and SIGCONT later."""
        replica = await self._elected() or self.rng.choice(self.replicas)
        frozen = [process for process in (replica.parent(), replica.child()) if process is not None]
        for process in frozen:
            process.suspend()
            self.journal.hit(process.pid)
        self.deaths["frozen and thawed"] += 1
        await asyncio.sleep(self.plan.frozen_s)
        for process in frozen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    async def _elected(self) -> Replica | None:
        rows = await self._rows("SELECT instance FROM processes WHERE stats->>'last_tick_at' > (now() - interval '15 s')::text")
        named = {str(row[0]).split("/")[0] for row in rows}
        return next((replica for replica in self.replicas if f"r{replica.number}" in named), None)

    async def _finish(self) -> None:
        """One worker and courier, without a scheduler, until nothing is left to do."""
        last = self.replicas[0]
        await last.start("worker", "courier")
        try:
            async with asyncio.timeout(150):
                while await self._number(
                    "SELECT (SELECT count(*) FROM pgqueuer) + (SELECT count(*) FROM outbox WHERE state = 'pending')"
                ):
                    await asyncio.sleep(0.5)
        except TimeoutError:
            pass  # the accounts will say what is left
        finally:
            await last.stop()

    async def account(self) -> Accounts:
        """The accounts, with what was done to the replicas, and what is left of them."""
        await self.database.close()  # its connections are of before the last restart of Postgres
        accounts = await settle(
            self.database,
            begun=self.begun,
            every_s=self.plan.every_s,
            calls=self.providers.calls(),
            messages=self.receiver.messages,
            journal=self.journal,
        )
        self._deeds(accounts)
        self._remains(accounts)
        return accounts

    def _deeds(self, accounts: Accounts) -> None:
        """Was everything done to them that the plan asks for?"""
        wanted = dict.fromkeys(POINTS, self.plan.each_point) | {
            "postgres restarted": self.plan.restarts,
            "frozen and thawed": 1,
        }
        few = {what: self.deaths[what] for what, n in wanted.items() if self.deaths[what] < n}
        accounts.law(not few, f"not done often enough: {few}")

    def _remains(self, accounts: Accounts) -> None:
        """What is left of them, and the most that there was of each."""
        seen, left = self.lookout, self.lookout.left()
        spooled = [str(file) for file in self.folder.glob("r*/spool/*.json")]
        accounts.law(not left, f"processes are left: {left}")
        accounts.law(not spooled, f"runs are left in spools: {spooled}")
        accounts.law(seen.looks > self.plan.seconds / 4, f"only {seen.looks} looks at what waits")
        accounts.law(seen.overdue_s <= OVERDUE_S, f"an announcement was free to be taken for {seen.overdue_s:.1f} s")
        most = self.plan.replicas * CONNECTIONS
        accounts.law(seen.connections <= most, f"{seen.connections} connections at once, {most} at most")
        accounts.law(seen.processes <= 2 * self.plan.replicas, f"{seen.processes} processes at once")
        accounts.figures |= {
            "starts of replicas": sum(replica.starts for replica in self.replicas),
            "longest that an announcement waited past its back-off, seconds": round(seen.overdue_s, 1),
            "most connections": seen.connections,
            "most processes": seen.processes,
        }

    async def _number(self, query: str) -> int:
        rows = await self._rows(query)
        return int(rows[0][0])

    async def _rows(self, query: str) -> list[tuple[object, ...]]:
        raw = await self.database.connect_raw()
        try:
            return [tuple(row) for row in await raw.fetch(query)]
        finally:
            await raw.close(timeout=2)


@contextlib.asynccontextmanager
async def fleet(plan: Plan, folder: Path) -> AsyncIterator[Fleet]:
    """A fleet that is ready to live."""
    names = [f"t{number:02d}" for number in range(plan.targets)]
    rng = Random(plan.seed)
    server = EmbeddedPostgres(directory=folder / "db", options={"max_connections": "200"})
    await server.start()
    database = Database(dsn=server.url, pool=2)
    try:
        await upgrade(database)
        await create_ahead(database, now=datetime.now(UTC))
        async with providers(names, load_catalog()) as played, receiving(rng) as receiver:
            text = config(names, every_s=plan.every_s, provider=played.server.port, receiver=receiver.port)
            (folder / "bandwatch.yaml").write_text(text)
            (folder / "fate").mkdir()
            (folder / "claims").mkdir()
            begun = datetime.now(UTC)
            keys = frozenset(key_of(target, place) for target in load_config(text).targets for place in target.locations)
            await ScheduleMark(database=database).save(Walk(at=begun, keys=keys), over=None)
            yield Fleet(
                plan=plan,
                folder=folder,
                server=server,
                database=database,
                replicas=[berth(number, folder, server.url) for number in range(plan.replicas)],
                providers=played,
                receiver=receiver,
                journal=Journal(folder / "claims"),
                rng=rng,
                begun=begun,
            )
    finally:
        await database.close()
        await server.stop()


async def crash_test(plan: Plan, folder: Path) -> tuple[Accounts, Counter[str]]:
    """Live, die, account."""
    async with fleet(plan, folder) as ships:
        await ships.live()
        return await ships.account(), ships.deaths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--targets", type=int, default=50)
    parser.add_argument("--every", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, default=None)
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    options = parser.parse_args()
    plan = Plan(
        seconds=options.seconds,
        targets=options.targets,
        every_s=options.every,
        seed=options.seed,
        each_point=int(options.seconds / 30),
    )
    folder = Path(tempfile.mkdtemp(prefix="bwk-"))
    folder.chmod(0o755)
    try:
        accounts, deaths = asyncio.run(crash_test(plan, folder))
    finally:
        if options.keep:
            print(folder, file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({"deaths": deaths, "figures": accounts.figures, "wrong": accounts.wrong}, indent=2))
    if options.report is not None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(report(plan, accounts, deaths))
    return 1 if accounts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
