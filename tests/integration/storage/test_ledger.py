"""The ledger on a real Postgres: one result a tick, budgets that hold over all workers, and nothing by halves."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select, text

from app.bootstrap.evidence import Tariff
from app.catalog.prices import load_prices
from app.clock import FakeClock
from app.measurement.model import Outcome
from app.storage import tables
from app.storage.database import Database
from app.storage.ledger import Ledger
from app.targets.model import Budget, Provider, Thresholds
from app.verdict.outbox import Claim, Decision, Past
from tests.support.runs import NOW, decide, run, target


def on(dsn: str, scenario: Callable[[Ledger], Awaitable[None]]) -> None:
    async def main() -> None:
        database = Database(dsn=dsn)
        try:
            await scenario(Ledger(database=database, clock=FakeClock(wall=NOW), thresholds=Thresholds))
        finally:
            await database.close()

    asyncio.run(main())


def test_a_tick_is_new_once_again_after_a_death_and_done_with_its_result(dsn: str) -> None:
    async def scenario(ledger: Ledger) -> None:
        tick = {"target": "p/m", "location": "default", "due_at": NOW, "owner": "w1"}
        assert await ledger.claim(**tick) is Claim.NEW
        assert await ledger.claim(**tick) is Claim.AGAIN
        await ledger.record(run(), target=target(), decide=decide)
        assert await ledger.claim(**tick) is Claim.DONE

    on(dsn, scenario)


def test_a_second_result_of_a_tick_changes_nothing(dsn: str) -> None:
    async def scenario(ledger: Ledger) -> None:
        assert (await ledger.record(run(), target=target(), decide=decide)).stored
        again = await ledger.record(run(outcome=Outcome.TIMEOUT), target=target(), decide=decide)
        assert not again.stored
        async with ledger.database.read() as connection:
            assert (await connection.execute(select(tables.runs.c.outcome))).scalars().all() == ["ok"]
            (totals,) = (await connection.execute(select(tables.totals.c.totals))).scalars()
        assert totals["outcomes"] == {"ok": 1}

    on(dsn, scenario)


def test_twenty_workers_that_store_one_tick_at_once_store_it_once(dsn: str) -> None:
    async def scenario(ledger: Ledger) -> None:
        results = await asyncio.gather(*(ledger.record(run(), target=target(), decide=decide) for _ in range(20)))
        assert sum(result.stored for result in results) == 1

    on(dsn, scenario)


def test_the_past_has_the_new_run_last_and_the_verdict_before_it(dsn: str) -> None:
    async def scenario(ledger: Ledger) -> None:
        pasts: list[Past] = []

        def remember(past: Past) -> Decision:
            pasts.append(past)
            return decide(past)

        for second in range(3):
            await ledger.record(run(NOW + timedelta(seconds=second), tps=100.0 + second), target=target(), decide=remember)
        assert [s.decode_tps for s in pasts[-1].samples] == [100.0, 101.0, 102.0]
        assert pasts[0].previous is None
        assert pasts[-1].previous is not None
        assert pasts[-1].previous.samples == 2

    on(dsn, scenario)


def test_a_late_result_is_stored_and_does_not_overwrite_a_newer_verdict(dsn: str) -> None:
    async def scenario(ledger: Ledger) -> None:
        await ledger.record(run(NOW), target=target(), decide=decide)
        late = await ledger.record(run(NOW - timedelta(minutes=5)), target=target(), decide=decide)
        assert (late.stored, late.decision) == (True, None)
        async with ledger.database.read() as connection:
            assert (await connection.execute(select(tables.verdicts.c.due_at))).scalar_one() == NOW

    on(dsn, scenario)


def test_a_decision_that_fails_leaves_nothing_behind(dsn: str) -> None:
    async def scenario(ledger: Ledger) -> None:
        def broken(_: Past) -> Decision:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await ledger.record(run(), target=target(), decide=broken)
        async with ledger.database.read() as connection:
            for table in (tables.runs, tables.totals, tables.verdicts, tables.outbox):
                assert (await connection.execute(select(table))).first() is None

    on(dsn, scenario)


def test_a_budget_holds_over_fifty_workers_at_once(dsn: str) -> None:
    async def scenario(ledger: Ledger) -> None:
        t = target(budget=Budget(tokens_per_day=1000), provider_budget=Budget(usd_per_day=0.5))
        granted = await asyncio.gather(*(ledger.reserve(target=t, tokens=100, usd=0.04, day=NOW.date()) for _ in range(50)))
        assert sum(granted) == 10
        async with ledger.database.read() as connection:
            spent = dict((await connection.execute(select(tables.budgets.c.scope, tables.budgets.c.tokens))).all())
        assert spent == {"provider:p": 1000, "target:p/m": 1000}

    on(dsn, scenario)


def test_a_budget_in_money_refuses_the_call_that_it_cannot_pay(dsn: str) -> None:
    async def scenario(ledger: Ledger) -> None:
        tariff = Tariff(prices=load_prices())
        budget = Budget(usd_per_day=0.0003)
        t = replace(
            target(budget=budget), provider=Provider(name="groq", base_url="https://x.example/v1"), model="openai/gpt-oss-120b"
        )
        cost = tariff.usd(t, t.recipe.prompt_tokens, t.recipe.output_tokens)
        assert cost == pytest.approx((60 * 0.15 + 128 * 0.60) / 1e6)
        granted = await asyncio.gather(*(ledger.reserve(target=t, tokens=188, usd=cost, day=NOW.date()) for _ in range(10)))
        assert sum(granted) == int(0.0003 / cost) == 3
        await ledger.settle(target=t, day=NOW.date(), reserved_tokens=188, used_tokens=188, reserved_usd=cost, used_usd=0.0)
        assert await ledger.reserve(target=t, tokens=188, usd=cost, day=NOW.date())
        assert not await ledger.reserve(target=t, tokens=188, usd=cost, day=NOW.date())

    on(dsn, scenario)


def test_settling_gives_back_what_was_not_used(dsn: str) -> None:
    async def scenario(ledger: Ledger) -> None:
        t = target(budget=Budget(tokens_per_day=150))
        assert await ledger.reserve(target=t, tokens=100, usd=None, day=NOW.date())
        assert not await ledger.reserve(target=t, tokens=100, usd=None, day=NOW.date())
        await ledger.settle(target=t, day=NOW.date(), reserved_tokens=100, used_tokens=40)
        assert await ledger.reserve(target=t, tokens=100, usd=None, day=NOW.date())

    on(dsn, scenario)


def test_recordings_are_bounded_per_target(dsn: str) -> None:
    async def scenario(ledger: Ledger) -> None:
        for second in range(53):
            await ledger.record(run(NOW + timedelta(seconds=second), recording=b"x"), target=target(), decide=decide)
        async with ledger.database.read() as connection:
            assert (await connection.execute(text("SELECT count(*) FROM recordings"))).scalar_one() == 50

    on(dsn, scenario)
