"""The worker: every tick comes to one terminal result, and nothing it costs or learns is lost."""

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, timedelta

import pytest

from app.dispatch.tick import Tick, TickResult
from app.dispatch.worker import INLINE_BYTES, PATIENCE_S, PAUSE_S, _billed, _planned
from app.errors import UnavailableError
from app.measurement.model import ErrorClass, Measurement, Outcome
from app.verdict.outbox import Claim
from tests.support.runs import NOW, target
from tests.support.workers import Bench

TICK = Tick(target="p/m", location="default", due_at=NOW)
RESERVED = target().recipe.prompt_tokens + target().recipe.output_tokens


def handled(bench: Bench, tick: Tick = TICK) -> TickResult | None:
    return asyncio.run(bench.worker.handle(tick))


def test_a_tick_is_probed_stored_settled_and_counted() -> None:
    bench = Bench()
    assert handled(bench) is TickResult.RUN
    (run,) = bench.ledger.runs
    assert (run.id, run.target, run.due_at, run.started_at) == ("a", "p/m", NOW, NOW)
    assert run.finished_at == NOW + timedelta(seconds=1)
    assert run.recording == b"kept"
    assert bench.ledger.reserved == [(RESERVED, None)]
    assert bench.ledger.settled[0]["used_tokens"] == 60 + 128
    assert bench.ledger.settled[0]["day"] == NOW.astimezone(UTC).date()
    assert bench.ledger.counted == {"run": 1}
    assert bench.worker.stats.in_flight == 0
    assert bench.worker.stats.last_finished_at == run.finished_at


def test_a_long_recording_is_packed_beside_the_loop() -> None:
    for size, there in ((INLINE_BYTES, True), (INLINE_BYTES + 1, False)):
        bench = Bench()
        bench.prober.body = b"x" * size
        packed_by: list[bool] = []
        here = threading.get_ident()

        def keep(*_: object, here: int = here, packed_by: list[bool] = packed_by) -> bytes:
            packed_by.append(threading.get_ident() == here)
            return b"kept"

        bench.worker.deps = replace(bench.worker.deps, keep=keep)
        assert handled(bench) is TickResult.RUN
        assert (bench.ledger.runs[0].recording, packed_by) == (b"kept", [there])


def test_what_a_run_cost_is_reserved_before_and_settled_after() -> None:
    bench = Bench(price=lambda _target, tokens_in, tokens_out: tokens_in * 1e-6 + tokens_out * 2e-6)
    handled(bench)
    recipe = target().recipe
    reserved = recipe.prompt_tokens * 1e-6 + recipe.output_tokens * 2e-6
    assert bench.ledger.reserved == [(RESERVED, reserved)]
    assert bench.ledger.settled[0]["reserved_usd"] == reserved
    assert bench.ledger.settled[0]["used_usd"] == 60e-6 + 128 * 2e-6 == bench.ledger.runs[0].cost_usd


def test_what_may_have_been_billed_stays_spent() -> None:
    for m, used in (
        (Measurement(outcome=Outcome.TRUNCATED, error_class=ErrorClass.TRUNCATED), (60, 128)),
        (Measurement(outcome=Outcome.TIMEOUT, error_class=ErrorClass.TIMEOUT), (0, 0)),
        (Measurement(outcome=Outcome.OK, error_class=ErrorClass.NONE, output_tokens=20), (60, 20)),
        (Measurement(outcome=Outcome.OK, error_class=ErrorClass.NONE, output_tokens=20, prompt_tokens=7), (7, 20)),
        (Measurement(outcome=Outcome.EMPTY, error_class=ErrorClass.EMPTY, output_tokens=0), (0, 0)),
    ):
        assert _billed(m, target().recipe) == used


def test_a_pair_of_calls_is_reserved_and_billed_as_two() -> None:
    pair = replace(target().recipe, paired=True)
    second = Measurement(outcome=Outcome.OK, error_class=ErrorClass.NONE, output_tokens=16, prompt_tokens=50, cold_ttft_s=0.5)
    assert (_planned(pair), _billed(second, pair)) == ((120, 256), (110, 144))
    lost = Measurement(outcome=Outcome.TIMEOUT, error_class=ErrorClass.TIMEOUT, cold_ttft_s=0.5)
    assert _billed(lost, pair) == (60, 128)
    assert _billed(replace(lost, cold_ttft_s=None), pair) == (0, 0)


def test_a_tick_that_another_worker_finished_is_left_alone_and_not_counted() -> None:
    bench = Bench()
    bench.ledger.claims["p/m", "default", NOW] = Claim.DONE
    bench.ledger.finished["p/m", "default", NOW] = "late"
    assert handled(bench) is None
    assert bench.prober.called == 0
    assert bench.ledger.counted == {}


def test_a_tick_whose_worker_died_between_storing_and_counting_is_counted_without_a_call() -> None:
    bench = Bench()
    bench.ledger.claims["p/m", "default", NOW] = Claim.DONE
    handled(bench)
    assert bench.prober.called == 0
    assert bench.ledger.counted == {"run": 1}


def test_a_tick_that_is_handed_over_while_it_runs_is_neither_called_nor_counted_twice() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.prober.gate = asyncio.Event()
        first = asyncio.create_task(bench.worker.handle(TICK))
        await asyncio.sleep(0)
        assert await bench.worker.handle(TICK) is None
        assert bench.ledger.counted == {}
        bench.prober.gate.set()
        assert await first is TickResult.RUN
        assert (bench.prober.called, bench.ledger.counted) == (1, {"run": 1})

    asyncio.run(scenario())


def test_a_database_that_is_away_for_a_moment_costs_no_tick() -> None:
    bench = Bench()
    bench.ledger.down_for = 5
    assert handled(bench) is TickResult.RUN
    assert (bench.prober.called, bench.ledger.counted) == (1, {"run": 1})
    assert bench.ledger.runs[0].started_at == NOW + timedelta(seconds=5 * PAUSE_S)


def test_a_database_that_is_away_for_longer_than_the_grace_makes_the_tick_missed_and_no_late_call() -> None:
    bench = Bench()
    bench.ledger.down_for = 100
    assert handled(bench) is TickResult.MISSED
    assert (bench.prober.called, bench.ledger.counted) == (0, {"missed": 1})


def test_a_database_that_stays_away_gives_the_job_back() -> None:
    bench = Bench()
    bench.ledger.down_for = 10_000
    with pytest.raises(UnavailableError):
        handled(bench)
    assert bench.clock.monotonic_ns() < (PATIENCE_S + 2) * 1e9


@pytest.mark.parametrize("step_s", [-7200.0, 7200.0, -3600.0, 3600.0])
def test_a_clock_set_while_a_probe_runs_does_not_change_how_long_it_took(step_s: float) -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.prober.gate = asyncio.Event()
        running = asyncio.create_task(bench.worker.handle(TICK))
        await asyncio.sleep(0)
        bench.clock.step(step_s)
        bench.prober.gate.set()
        await running
        (run,) = bench.ledger.runs
        assert run.finished_at - run.started_at == timedelta(seconds=1)

    asyncio.run(scenario())


def test_a_tick_that_died_with_its_worker_is_called_again_and_that_is_counted() -> None:
    bench = Bench()
    bench.ledger.claims["p/m", "default", NOW] = Claim.AGAIN
    assert handled(bench) is TickResult.RUN
    assert bench.worker.stats.repeated_calls == 1


def test_a_tick_somewhat_late_runs_and_says_so_and_one_too_late_is_missed_without_a_call() -> None:
    bench = Bench()
    bench.clock.advance(29.0)
    assert handled(bench) is TickResult.LATE
    assert bench.worker.stats.last_lateness_s == 29.0
    bench = Bench()
    bench.clock.advance(61.0)
    assert handled(bench) is TickResult.MISSED
    assert (bench.prober.called, bench.ledger.counted) == (0, {"missed": 1})


def test_a_probe_that_a_person_asked_for_is_never_too_late_nor_paused() -> None:
    bench = Bench(targets=[replace(target(), paused=True)])
    bench.clock.advance(600.0)
    assert handled(bench, replace(TICK, asked=True)) is TickResult.RUN


def test_a_paused_or_deleted_target_is_skipped() -> None:
    assert handled(Bench(targets=[replace(target(), paused=True)])) is TickResult.SKIPPED_PAUSED
    assert handled(Bench(targets=[])) is TickResult.SKIPPED_PAUSED


def test_a_target_that_is_still_being_probed_is_not_probed_twice() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.prober.gate = asyncio.Event()
        first = asyncio.create_task(bench.worker.handle(TICK))
        await asyncio.sleep(0)
        later = replace(TICK, due_at=NOW + timedelta(seconds=60))
        assert await bench.worker.handle(later) is TickResult.SKIPPED_OVERLAP
        assert bench.worker.stats.in_flight == 1
        bench.prober.gate.set()
        assert await first is TickResult.RUN
        assert await bench.worker.handle(replace(TICK, due_at=NOW + timedelta(seconds=61))) is TickResult.RUN
        assert bench.ledger.counted == {"run": 2, "skipped_overlap": 1}

    asyncio.run(scenario())


def test_a_spent_budget_makes_no_call_and_is_a_result_of_its_own() -> None:
    bench = Bench()
    bench.ledger.room = False
    assert handled(bench) is TickResult.SKIPPED_BUDGET
    (run,) = bench.ledger.runs
    assert (run.measurement.outcome, run.measurement.error_class) == (Outcome.SKIPPED_BUDGET, ErrorClass.BUDGET)
    assert (bench.prober.called, bench.ledger.settled) == (0, [])


def test_a_run_that_cannot_be_stored_waits_on_disk() -> None:
    bench = Bench()
    bench.ledger.away = True
    assert handled(bench) is TickResult.RUN
    assert [run.target for run in bench.spooled] == ["p/m"]
    assert bench.worker.stats.spooled == 1


def test_a_full_spool_is_not_counted_as_spooled() -> None:
    bench = Bench(spool_has_room=False)
    bench.ledger.away = True
    assert handled(bench) is TickResult.RUN
    assert bench.worker.stats.spooled == 0


def test_a_result_that_came_second_is_not_stored_again() -> None:
    async def scenario() -> None:
        bench = Bench()
        bench.prober.gate = asyncio.Event()
        slow = asyncio.create_task(bench.worker.handle(TICK))
        await asyncio.sleep(0)
        bench.ledger.claims["p/m", "default", NOW] = Claim.DONE  # another worker took over and finished
        bench.prober.gate.set()
        assert await slow is None
        assert bench.ledger.runs == []

    asyncio.run(scenario())


def test_without_usage_the_reservation_stays_spent_where_the_provider_may_have_billed_it() -> None:
    for outcome, used in [(Outcome.STALLED, RESERVED), (Outcome.TRUNCATED, RESERVED), (Outcome.RATE_LIMITED, 0)]:
        bench = Bench()
        bench.prober.says = Measurement(outcome=outcome, error_class=ErrorClass.NONE)
        handled(bench)
        assert bench.ledger.settled[0]["used_tokens"] == used, outcome
