"""Requests that nobody thought of, over the whole OpenAPI: none breaks the service, and none gets what it may not have.

A few hundred in the suite; `make test-fuzz-api` sends more than ten thousand.
"""

import asyncio
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from schemathesis import Case

from app.api.door import EXEMPT, PURE
from app.storage.queries import keys
from app.storage.queries.keys import Scope
from app.storage.queries.session import reading, writing
from tests.support.doors import House, build_house, seed
from tests.support.fuzz import CHECKS, Prowler

QUICK = 6
MANY = [pytest.param(QUICK, id="quick"), pytest.param(220, id="many", marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
SAFE = {"GET", "HEAD", "OPTIONS"}


@pytest.fixture
def prowler(dsn: str) -> Iterator[Prowler]:
    """A house with history, whose event streams end at once."""
    with asyncio.Runner() as loop:
        house = build_house(dsn, stopping=lambda: True)
        ids = loop.run(seed(house, runs=20, failing=5))
        yield Prowler(house=house, loop=loop, ids={"run_id": tuple(ids[-3:])})
        loop.run(house.database.close())


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def guarded(operation: Any) -> bool:
    return operation.path not in EXEMPT


async def traces(house: House) -> tuple[Any, ...]:
    """Everything that a change through the API leaves behind."""
    async with reading(house.database) as session:
        counts = [
            (await session.connection.exec_driver_sql(f"SELECT count(*) FROM {table}")).scalar_one()
            for table in ("audit", "api_targets", "api_channels", "silences", "paused_targets", "outbox")
        ]
    return (*counts, len(house.probes))


@pytest.mark.parametrize("examples", MANY)
def test_no_request_of_an_admin_makes_the_service_fail_or_break_its_own_description(prowler: Prowler, examples: int) -> None:
    headers = bearer(prowler.loop.run(prowler.house.key(Scope.ADMIN)))

    def visit(case: Case) -> None:
        case.validate_response(prowler.send(case, headers=headers), checks=CHECKS)

    visited = prowler.prowl(visit, examples=examples)
    assert visited >= 25 * examples
    statuses = {status for _, status in prowler.answers}
    assert {200, 404, 422} <= statuses
    assert max(statuses) < 500


@pytest.mark.parametrize("examples", MANY)
def test_no_request_without_a_good_key_succeeds(prowler: Prowler, examples: int) -> None:
    house, loop = prowler.house, prowler.loop
    key = loop.run(house.key(Scope.ADMIN))
    revoked = loop.run(house.key(Scope.ADMIN, name="gone"))
    loop.run(revoke(house, "gone"))
    wrong = cycle([
        {}, bearer(revoked), bearer(key[:-1]), bearer(key.swapcase()), bearer("bw_"), bearer(f"{key} "  + key),
        {"Authorization": f"Basic {key}"}, {"Authorization": key}, {"X-Api-Key": key}, {"Cookie": f"bandwatch_key={revoked}"},
        {"Cookie": f"key={key}"}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Original-URL": "/livez"},
    ])  # fmt: skip

    def visit(case: Case) -> None:
        assert prowler.send(case, headers=next(wrong)).status_code in {400, 401, 413}

    before = loop.run(traces(house))
    assert prowler.prowl(visit, examples=examples, operations=guarded) >= 25 * examples
    assert loop.run(traces(house)) == before


async def revoke(house: House, name: str) -> None:
    async with writing(house.database) as session:
        (known,) = [each for each in await keys.list_keys(session) if each.name == name]
        await keys.revoke_key(session, known.id, now=house.clock.now())


@pytest.mark.parametrize("examples", MANY)
@pytest.mark.parametrize("keyed", [True, False])
def test_who_may_only_read_changes_nothing(prowler: Prowler, examples: int, *, keyed: bool) -> None:
    house, loop = prowler.house, prowler.loop
    headers = bearer(loop.run(house.key(Scope.READ))) if keyed else {}

    def visit(case: Case) -> None:
        status = prowler.send(case, headers=headers).status_code
        may = case.method in SAFE or case.path in PURE
        assert status < 500
        assert status in {400, 403, 413} or (may and not case.path.endswith("/audit"))

    before = loop.run(traces(house))
    assert prowler.prowl(visit, examples=examples, operations=guarded) >= 25 * examples
    assert loop.run(traces(house)) == before
