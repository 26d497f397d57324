"""The schedule of an answer is arithmetic: without noise it is the theory to the digit, with noise it keeps its means."""

from itertools import pairwise
from random import Random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulator.hidden import Pace
from app.simulator.plan import Habits, Plan, plan, queue_wait_s

PACE = Pace(step_s=0.0078125, prefill_floor_s=0.03125, prefill_token_s=0.0009765625)
"""Powers of two, so that sums are exact."""


def planned(habits: Habits = Habits(), *, seed: int = 0, tokens: int = 64, prompt: int = 16, **more: float) -> Plan:
    return plan(PACE, habits, tokens=tokens, prompt_tokens=prompt, rng=Random(seed), **more)  # type: ignore[arg-type]


def test_without_habits_each_token_leaves_one_step_after_the_one_before() -> None:
    made = planned()
    assert [write.at_s for write in made.writes] == [0.03125 + 0.0078125 * k for k in range(1, 65)]
    assert [write.chunks for write in made.writes] == [(1,)] * 64


def test_the_first_token_comes_after_queue_prefill_and_one_step() -> None:
    assert planned(prompt=1024).writes[0].at_s == 1.0 + 0.0078125
    assert planned(prompt=1).prefill_s == 0.03125


def test_jitter_moves_steps_and_keeps_their_mean() -> None:
    made = planned(Habits(jitter=0.1), tokens=4000)
    gaps = [after.at_s - before.at_s for before, after in pairwise(made.writes)]
    assert min(gaps) > 0
    assert mean(gaps) == pytest.approx(PACE.step_s, rel=0.01)


def test_fused_steps_wait_for_the_last_of_them() -> None:
    made = planned(Habits(steps_per_chunk=4), tokens=10)
    assert [(write.at_s, write.chunks) for write in made.writes] == [
        (0.03125 + 4 * 0.0078125, (4,)),
        (0.03125 + 8 * 0.0078125, (4,)),
        (0.03125 + 10 * 0.0078125, (2,)),
    ]


def test_a_broken_number_of_steps_is_met_on_average() -> None:
    made = planned(Habits(steps_per_chunk=1.2), tokens=6000)
    assert 6000 / len(made.writes) == pytest.approx(1.2, rel=0.02)


def test_a_proxy_that_flushes_gathers_events_into_writes() -> None:
    made = planned(Habits(flush_s=0.0625), tokens=20)
    assert [write.at_s for write in made.writes] == [0.0625, 0.125, 0.1875]
    assert [write.chunks for write in made.writes] == [(1,) * 4, (1,) * 8, (1,) * 8]


@pytest.mark.parametrize("acceptance", [0.0, 0.6, 0.9, 1.0])
def test_a_step_with_a_draft_gives_what_leviathan_says(acceptance: float) -> None:
    made = planned(tokens=20000, acceptance=acceptance, draft=3)
    expected = 4.0 if acceptance == 1.0 else (1 - acceptance**4) / (1 - acceptance)
    assert 20000 / len(made.writes) == pytest.approx(expected, rel=0.02)


def test_an_m_m_1_queue_is_empty_for_the_rest_of_its_utilization() -> None:
    rng, habits = Random(3), Habits(utilization=0.5, service_s=0.1)
    waits = [queue_wait_s(habits, rng) for _ in range(20000)]
    assert waits.count(0.0) / len(waits) == pytest.approx(0.5, abs=0.02)
    assert mean(waits) == pytest.approx(0.5 * 0.1 / (1 - 0.5), rel=0.05)


def test_a_log_normal_queue_has_its_median() -> None:
    rng, habits = Random(4), Habits(queue_median_s=0.2, queue_sigma=0.7)
    waits = sorted(queue_wait_s(habits, rng) for _ in range(9999))
    assert waits[5000] == pytest.approx(0.2, rel=0.05)


@given(
    seed=st.integers(0, 10**6),
    tokens=st.integers(1, 200),
    steps=st.floats(1, 20),
    jitter=st.floats(0, 0.5),
    flush=st.sampled_from([0.0, 0.01, 0.3]),
    acceptance=st.floats(0, 1),
    draft=st.integers(0, 8),
)
def test_every_token_leaves_once_and_time_only_moves_on(
    seed: int, tokens: int, steps: float, jitter: float, flush: float, acceptance: float, draft: int
) -> None:
    habits = Habits(queue_median_s=0.01, jitter=jitter, steps_per_chunk=steps, flush_s=flush, reasoning=0.5)
    made = planned(habits, seed=seed, tokens=tokens, acceptance=acceptance, draft=draft)
    assert made.tokens == tokens
    assert all(before.at_s < after.at_s for before, after in pairwise(made.writes))
    assert made.writes[0].at_s > made.queue_s + made.prefill_s
    assert made.reasoning_tokens == tokens // 2
    assert made == planned(habits, seed=seed, tokens=tokens, acceptance=acceptance, draft=draft)
