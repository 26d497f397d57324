"""A diagnosis that is asked for over HTTP is worked off by a worker of its location, once, and within the budgets."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from app.bootstrap.diagnosing import Diagnosing, own_past, seen_only_here
from app.catalog.load import load_catalog
from app.measurement.model import ErrorClass, Measurement, Outcome, Phases, Reading, Reliable
from app.measurement.recording import Marks, Recording
from app.storage.diagnoses import KEPT, LOST_AFTER, Diagnoses
from app.storage.ledger import Ledger
from app.storage.queries.keys import Scope
from app.targets.model import Budget, Prompt, Target, Thresholds
from app.verdict.diagnosis.model import Before
from tests.support.doors import BIG, NOW, House, in_house

PATH = f"/api/v1/targets/{BIG}/diagnose"
CATALOG = load_catalog()


@dataclass
class Endpoint:
    """Answers probes by stated figures; `code` is how much faster code streams than prose."""

    code: float = 1.0
    tps: float = 100.0
    start_s: float = 0.1
    calls: int = 0
    most: int = 0
    running: int = 0
    gate: asyncio.Event | None = None
    seen: list[Target] = field(default_factory=list)

    async def probe(self, target: Target) -> tuple[Recording, Reading]:
        self.calls, self.running = self.calls + 1, self.running + 1
        self.most = max(self.most, self.running)
        self.seen.append(target)
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        self.running -= 1
        recipe = target.recipe
        tps = self.tps * (self.code if recipe.prompt is Prompt.CODE else 1.0) * (1 + 0.01 * (self.calls % 3))
        ttft = self.start_s + 20e-6 * recipe.prompt_tokens
        measured = Measurement(
            outcome=Outcome.OK, error_class=ErrorClass.NONE, ttft_s=ttft, decode_tps=tps, phases=Phases(connect_s=0.02),
            prompt_tokens=recipe.prompt_tokens, output_tokens=recipe.output_tokens, reliable=Reliable(ttft=True, tps=True),
        )  # fmt: skip
        stamps = tuple(ttft + i / tps for i in range(20))
        return a_recording(), Reading(measurement=measured, read_stamps_s=stamps, read_tokens=(1.0,) * 20)


def a_recording() -> Recording:
    return Recording(base_url="http://x", model="m", recipe="r", dialect="openai", started_at=NOW, marks=Marks(started=0))


def a_worker(house: House, endpoint: Endpoint, *, owner: str = "w1", location: str = "default") -> Diagnosing:
    return Diagnosing(
        location=location, config=lambda: house.holder.current, catalog=CATALOG, clock=house.clock, prober=endpoint,
        ledger=Ledger(database=house.database, clock=house.clock, thresholds=Thresholds),
        diagnoses=Diagnoses(database=house.database, owner=owner),
    )  # fmt: skip


def told(dsn: str, scenario: Callable[[House, Any], Awaitable[None]]) -> None:
    async def main(house: House) -> None:
        async with house.caller(key=await house.key(Scope.WRITE, name="eve")) as client:
            await scenario(house, client)

    in_house(dsn, main)


async def latest(client: Any, path: str = PATH) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(path)).json()["items"][0]
    return found


def test_what_is_asked_for_is_worked_off_and_told(dsn: str) -> None:
    async def scenario(house: House, client: Any) -> None:
        assert (await client.get(PATH)).json()["items"] == []
        asked = await client.post(PATH)
        assert (asked.status_code, asked.json()["state"], asked.json()["location"]) == (202, "queued", "default")
        assert (await client.post(PATH)).status_code == 409
        endpoint = Endpoint(code=1.4)
        worker = a_worker(house, endpoint)
        assert await worker.once() is True
        assert await worker.once() is False
        done = await latest(client)
        assert (done["id"], done["state"], done["error"]) == (asked.json()["id"], "done", None)
        assert done["report"]["figures"]["speculated"] is True
        assert done["report"]["calls"] == endpoint.calls
        assert endpoint.most == 2, "the provider's max_concurrency"
        assert done["progress"]["experiment"] == "prompt_cache"
        assert (await client.post(PATH)).status_code == 202

    told(dsn, scenario)


def test_a_later_diagnosis_is_held_against_the_last_one_without_complaint(dsn: str) -> None:
    async def scenario(house: House, client: Any) -> None:
        wish = {"tests": ["speculation"], "budget_tokens": 50_000}
        for endpoint in (Endpoint(code=1.5, tps=150.0), Endpoint(code=1.0, tps=100.0)):
            assert (await client.post(PATH, json=wish)).status_code == 202
            await a_worker(house, endpoint).once()
            house.clock.advance(60)
        done = await latest(client)
        assert done["report"]["causes"][0]["cause"] == "speculation_off"
        assert {test["reason"] for test in done["report"]["tests"] if test["reason"] is not None} >= {"not_asked"}

    told(dsn, scenario)


def test_the_budget_of_the_provider_stops_it_and_the_report_says_so(dsn: str) -> None:
    async def scenario(house: House, client: Any) -> None:
        config = house.holder.current
        tight = tuple(replace(t, budget=Budget(tokens_per_day=2000)) for t in config.targets)
        house.holder.current = replace(config, targets=tight)
        await client.post(PATH)
        endpoint = Endpoint()
        await a_worker(house, endpoint).once()
        done = await latest(client)
        assert done["state"] == "done"
        assert done["report"]["tokens"] <= 2000
        assert {"test": "speculation", "reason": "budget"} in done["report"]["not_run"]
        async with house.database.read() as connection:
            spent = await connection.exec_driver_sql("SELECT sum(tokens) FROM budgets WHERE scope LIKE 'target:%%'")
            assert spent.scalar_one() == done["report"]["tokens"]

    told(dsn, scenario)


def test_only_workers_of_the_location_take_it_and_only_one_of_them(dsn: str) -> None:
    async def scenario(house: House, client: Any) -> None:
        await client.post(PATH, json={"tests": ["parallel_streams"]})
        assert await a_worker(house, Endpoint(), location="elsewhere").once() is False
        workers = [a_worker(house, Endpoint(), owner=f"w{n}") for n in range(3)]
        assert sorted(await asyncio.gather(*(worker.once() for worker in workers))) == [False, False, True]

    told(dsn, scenario)


def test_a_worker_that_dies_leaves_it_failed_and_the_next_can_be_asked_for(dsn: str) -> None:
    async def scenario(house: House, client: Any) -> None:
        await client.post(PATH)
        taken = await Diagnoses(database=house.database, owner="dead").take("default", now=house.clock.now())
        assert taken is not None
        house.clock.advance(LOST_AFTER.total_seconds() + 1)
        assert await a_worker(house, Endpoint()).once() is False
        assert (await latest(client))["error"] == "the worker that ran it is gone"
        dead = Diagnoses(database=house.database, owner="dead")
        assert await dead.beat(taken.id, {}, now=house.clock.now()) is False
        await dead.finish(taken, now=house.clock.now(), report={"complaint": "none"})
        assert (await latest(client))["state"] == "failed"
        assert (await client.post(PATH)).status_code == 202

    told(dsn, scenario)


def test_a_worker_that_is_stopped_says_so(dsn: str) -> None:
    async def scenario(house: House, client: Any) -> None:
        await client.post(PATH)
        stop, endpoint = asyncio.Event(), Endpoint(gate=asyncio.Event())
        running = asyncio.ensure_future(a_worker(house, endpoint).run(stop))
        async with asyncio.timeout(30):
            while not endpoint.calls:
                await asyncio.sleep(0.01)
            assert (await latest(client))["progress"] == {"experiment": "speculation", "done": 0, "of": 20}
            stop.set()
            await running
        found = await latest(client)
        assert (found["state"], found["error"]) == ("failed", "the worker was stopped")

    told(dsn, scenario)


def test_an_error_of_ours_fails_it_and_is_not_swallowed(dsn: str) -> None:
    class Broken(Endpoint):
        async def probe(self, target: Target) -> tuple[Recording, Reading]:
            raise RuntimeError("a bug")

    async def scenario(house: House, client: Any) -> None:
        await client.post(PATH)
        with pytest.raises(ExceptionGroup):
            await a_worker(house, Broken()).once()
        assert (await latest(client))["error"] == "it broke off by an error of the monitor"

    told(dsn, scenario)


def test_a_target_that_went_meanwhile_fails_it(dsn: str) -> None:
    async def scenario(house: House, client: Any) -> None:
        await client.post(PATH)
        house.holder.current = replace(house.holder.current, targets=())
        assert await a_worker(house, Endpoint()).once() is True
        house.holder.current = house.holder.base
        assert (await latest(client))["error"] == "nobody knows this target any more"

    told(dsn, scenario)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"location": "mars"}, "location"),
        ({"tests": ["luck"]}, "tests"),
        ({"budget_tokens": -1}, "budget_tokens"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_makes_no_sense_is_refused(dsn: str, body: dict[str, Any], field: str) -> None:
    async def scenario(house: House, client: Any) -> None:
        answer = await client.post(PATH, json=body)
        assert answer.status_code == 422
        assert field in answer.text
        assert (await client.post("/api/v1/targets/nobody/diagnose")).status_code == 404
        assert (await client.get("/api/v1/targets/nobody/diagnose")).status_code == 404

    told(dsn, scenario)


def test_only_the_latest_are_kept(dsn: str) -> None:
    async def scenario(house: House, client: Any) -> None:
        diagnoses = Diagnoses(database=house.database, owner="w")
        for _ in range(KEPT + 3):
            assert (await client.post(PATH)).status_code == 202
            asked = await diagnoses.take("default", now=house.clock.now())
            assert asked is not None
            await diagnoses.finish(asked, now=house.clock.now(), report={"complaint": "none"})
            house.clock.advance(1)
        found = (await client.get(PATH, params={"limit": 200})).json()["items"]
        assert len(found) == KEPT
        assert found[0]["asked_at"] > found[-1]["asked_at"]

    told(dsn, scenario)


def test_without_an_earlier_report_the_targets_own_level_is_its_past() -> None:
    assert own_past({"baseline": 120.0}) == Before(prose_tps=120.0)
    assert own_past({"baseline": None}) == own_past({}) == Before()
    assert seen_only_here(["only_here", "network_suspected"]) is True
    assert seen_only_here(["seen_from_several_locations"]) is False
    assert seen_only_here([]) is seen_only_here(None) is None
    assert timedelta(minutes=5) < LOST_AFTER
