"""The API on a real database, as tests want it: a configuration, a caller, and seeded history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
from fastapi import FastAPI

from app.api.app import create_app
from app.api.services import Limits, Services
from app.clock import FakeClock
from app.measurement.model import Outcome
from app.metrics.snapshot import Build
from app.storage.database import Database
from app.storage.ledger import Ledger
from app.storage.queries import keys, managed
from app.storage.queries.keys import Scope
from app.storage.queries.session import reading, writing
from app.targets.load import load_channel, load_config, load_target
from app.targets.model import Config, FitFor, Target, Thresholds
from app.verdict.advance import advance
from app.verdict.judge import judge
from app.verdict.outbox import Decision, Past
from tests.support.runs import run as a_run
from tests.support.verdicts import an_expectation

NOW = datetime.now(UTC).replace(microsecond=0)
CONFIG = """
providers:
  groq: {base_url: "https://api.groq.com/openai/v1", api_key: "${env:GROQ_API_KEY}"}
  lab: {base_url: "http://127.0.0.1:9/v1"}
targets:
  - {name: groq/openai/gpt-oss-120b, provider: groq, model: openai/gpt-oss-120b, every: 60s,
     deployment: {model_spec: openai/gpt-oss-120b, hardware: H100-SXM-80GB, devices: 8}}
  - {name: lab/tiny, provider: lab, model: tiny, every: 30s}
channels:
  ops: {kind: webhook, url: "https://hooks.example.net/bandwatch", secret: "${env:HOOK_SECRET}"}
"""
BIG = "groq/openai/gpt-oss-120b"


@dataclass
class Holder:
    """The configuration of the file, with what the API made merged in."""

    base: Config
    database: Database
    current: Config = field(init=False)

    def __post_init__(self) -> None:
        self.current = self.base

    async def reload(self) -> None:
        async with reading(self.database) as session:
            targets = await managed.documents(session, "targets")
            channels = await managed.documents(session, "channels")
            paused = await managed.paused(session)
        made = [load_target(document, config=self.base) for document in targets.values()]
        self.current = replace(
            self.base,
            targets=tuple(replace(t, paused=t.paused or t.name in paused) for t in (*self.base.targets, *made)),
            channels={**self.base.channels, **{name: load_channel(name, doc) for name, doc in channels.items()}},
        )


@dataclass
class House:
    """One application and everything it stands on."""

    database: Database
    clock: FakeClock
    holder: Holder
    services: Services
    app: FastAPI
    probes: list[tuple[str, str, datetime]]

    @asynccontextmanager
    async def caller(
        self, *, key: str | None = None, host: str = "localhost", address: str = "127.0.0.1"
    ) -> AsyncIterator[Any]:
        transport = httpx2.ASGITransport(app=self.app, raise_app_exceptions=False, client=(address, 1234))
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(transport=transport, base_url=f"http://{host}", headers=headers) as client:
            yield client

    async def key(self, scope: Scope = Scope.ADMIN, *, name: str = "ada") -> str:
        async with writing(self.database) as session:
            return (await keys.create_key(session, name=name, scope=scope, now=self.clock.now()))[1]


def build_house(dsn: str, *, exposed: bool = False, limits: Limits | None = None, **more: Any) -> House:
    database, clock = Database(dsn=dsn), FakeClock(wall=NOW)
    holder = Holder(base=load_config(CONFIG), database=database)
    probes: list[tuple[str, str, datetime]] = []

    async def trigger(target: Target, location: str, at: datetime) -> None:
        probes.append((target.name, location, at))

    services = Services(
        database=database,
        clock=clock,
        config=lambda: holder.current,
        reload=holder.reload,
        trigger_probe=trigger,
        build=Build(version="0.1.0", revision="test"),
        exposed=exposed,
        limits=limits or Limits(requests_per_s=1e6, burst=10**6),
        **more,
    )
    return House(database=database, clock=clock, holder=holder, services=services, app=create_app(services), probes=probes)


def in_house(
    dsn: str, scenario: Callable[[House], Awaitable[None]], *, build: Callable[..., House] | None = None, **options: Any
) -> None:
    """Run a scenario against a house, and close its connections afterwards."""

    async def main() -> None:
        house = (build or build_house)(dsn, **options)
        try:
            await scenario(house)
        finally:
            await house.database.close()

    asyncio.run(main())


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


async def seed(
    house: House,
    *,
    target: str = BIG,
    runs: int = 20,
    tps: float = 100.0,
    expected: float = 1000.0,
    failing: int = 0,
    every: timedelta = timedelta(minutes=1),
) -> list[str]:
    """Store runs that end now, judged for real, oldest first; the last `failing` of them fail. Returns their ids."""
    wanted = next(t for t in house.holder.current.targets if t.name == target)
    ledger = Ledger(database=house.database, clock=house.clock, thresholds=Thresholds)
    ids = []
    for index in range(runs):
        at = NOW - every * (runs - 1 - index) - timedelta(seconds=2)
        outcome = Outcome.OK if index < runs - failing else Outcome.PROVIDER_ERROR
        one = replace(
            a_run(at, outcome=outcome, tps=tps + index, name=target), provider=wanted.provider.name, model=wanted.model
        )
        await ledger.record(one, target=wanted, decide=judged(wanted, expected=expected, at=one.finished_at))
        ids.append(one.id)
    return ids


def judged(target: Target, *, expected: float, at: datetime) -> Callable[[Past], Decision]:
    def decide(past: Past) -> Decision:
        verdict = judge(
            target=target,
            location="default",
            past=past,
            expectation=an_expectation(expected),
            thresholds=Thresholds(),
            fit_for=FitFor(),
            now=at,
        )
        step = advance(target=target, verdict=verdict, past=past, thresholds=Thresholds(), now=at, new_id=lambda: uuid4().hex)
        return Decision(verdict=verdict, advance=step)

    return decide
