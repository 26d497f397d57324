"""What arrives at the far end of a line is the plan, half a round trip later, in order."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from app.simulator.hidden import Pace
from app.simulator.line import RESEND_S, Line, watch
from app.simulator.plan import METRONOME, Habits, Plan, plan

PACE = Pace(step_s=0.0078125, prefill_floor_s=0.03125)


def planned(habits: Habits = METRONOME, *, seed: int = 0, tokens: int = 64) -> Plan:
    return plan(PACE, habits, tokens=tokens, prompt_tokens=16, rng=Random(seed))


def test_a_still_line_moves_everything_by_one_round_trip() -> None:
    made = planned()
    seen = watch(made, Line(rtt_s=0.0625), rng=Random(1))
    assert seen.connect_s == 0.0625
    assert list(seen.stamps_s) == [write.at_s + 0.0625 for write in made.writes]
    assert seen.tokens == (1,) * 64


def test_what_waits_behind_a_lost_write_arrives_with_it() -> None:
    seen = watch(planned(), Line(rtt_s=0.0625, loss=0.05), rng=Random(3))
    assert sum(seen.tokens) == 64
    assert len(seen.stamps_s) < 64
    assert max(b - a for a, b in pairwise(seen.stamps_s)) >= RESEND_S


@given(st.integers(0, 99), st.floats(0.001, 1.0), st.floats(0.0, 0.5), st.floats(0.0, 0.2))
def test_no_line_loses_a_token_or_turns_time_back(seed: int, rtt_s: float, jitter: float, loss: float) -> None:
    made = planned(Habits(jitter=0.2, steps_per_chunk=1.5), seed=seed)
    seen = watch(made, Line(rtt_s=rtt_s, jitter=jitter, loss=loss), rng=Random(seed))
    assert sum(seen.tokens) == made.tokens
    assert all(a < b for a, b in pairwise(seen.stamps_s))
    assert all(stamp >= rtt_s for stamp in (seen.connect_s, *seen.stamps_s))
