"""Small experiments say as much as their samples carry: exact intervals, robust lines, and nothing from too few calls."""

import math
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.measurement.model import ErrorClass, Measurement, Outcome, Phases, Reading, Reliable
from app.verdict.diagnosis import readings
from app.verdict.diagnosis.design import CACHE_PAIRS, LENGTHS, PAIRS, cost_of, prefix_for, rounds_of
from app.verdict.diagnosis.model import Call, Experiment, Trial, trial_of
from app.verdict.diagnosis.statistics import line, percentile, rank_correlation, shift, signed_rank, spread
from tests.support.diagnosis import Provider, a_trial

figures = st.floats(-1e3, 1e3)


@pytest.mark.parametrize(("n", "rank"), [(0, 0), (5, 0), (6, 1), (7, 3), (8, 4), (10, 9), (12, 14), (20, 53)])
def test_the_ranks_are_those_of_wilcoxons_published_table(n: int, rank: int) -> None:
    assert signed_rank(n) == rank


@pytest.mark.parametrize("n", [6, 8, 10])
def test_the_interval_of_a_shift_misses_in_one_of_twenty_at_most_by_enumeration(n: int) -> None:
    """Every pattern of signs of n differences is equally likely where there is no shift."""
    sizes = [1.0 + i * 0.37 for i in range(n)]
    misses = 0
    for signs in product((-1, 1), repeat=n):
        found = shift([sign * size for sign, size in zip(signs, sizes, strict=True)])
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        misses += not found.low <= 0 <= found.high
    assert 0.5 * 0.05 < misses / 2**n <= 0.05


@given(st.lists(figures, min_size=1, max_size=15), figures, st.randoms())
def test_a_shift_moves_with_its_values_and_does_not_care_for_order(values: list[float], by: float, chance: Random) -> None:
    shuffled = list(values)
    chance.shuffle(shuffled)
    found, moved = shift(values), shift([value + by for value in shuffled])
    assert found is not None
    assert moved is not None
    assert moved.value == pytest.approx(found.value + by, abs=1e-6)
    assert (moved.n, moved.low is None) == (len(values), len(values) < 6)
    assert shift([]) is None


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_a_line_is_found_through_outliers(start: float, slope: float) -> None:
    points = [(float(x), start + slope * x) for x in range(12)]
    points[3], points[7] = (3.0, 1e6), (7.0, -1e6)
    found = line(points)
    assert found is not None
    assert found == pytest.approx((start, slope), abs=1e-6)
    assert line([(1.0, 2.0), (1.0, 3.0)]) is None


def test_rank_correlation_and_spread_need_enough_that_varies() -> None:
    up = [float(i) for i in range(10)]
    assert rank_correlation(up, [x**3 for x in up]) == pytest.approx(1.0)
    assert rank_correlation(up, up[::-1]) == pytest.approx(-1.0)
    assert rank_correlation(up, [1.0] * 10) is None
    assert rank_correlation(up[:7], up[:7]) is None
    assert spread([1.0, 2.0]) is None
    assert spread([1.0, 2.0, 3.0, 100.0, 2.0]) == pytest.approx(1.4826)
    normal = [Random(i).gauss(0, 2) for i in range(4000)]
    assert spread(normal) == pytest.approx(2.0, rel=0.06)
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0], 0.9) == 1.0


def test_designs_are_balanced_and_cost_what_they_say() -> None:
    pairs = rounds_of(Experiment.SPECULATION, seed=1)
    assert [call.arm for (call,) in pairs[:4]] == ["code", "prose", "prose", "code"]
    assert sum(call.arm == "code" for (call,) in pairs) == PAIRS == len(pairs) / 2
    lengths = rounds_of(Experiment.LENGTHS, seed=1)
    for start in range(0, len(lengths), len(LENGTHS)):
        assert sorted(call.recipe.prompt_tokens for (call,) in lengths[start : start + len(LENGTHS)]) == list(LENGTHS)
    streams = rounds_of(Experiment.STREAMS, seed=1)
    assert [len(each) for each in streams] == [1, 2, 4] * 3
    assert [len(each) for each in rounds_of(Experiment.STREAMS, seed=1, most_streams=3)] == [1, 2] * 3
    assert rounds_of(Experiment.STREAMS, seed=1, most_streams=1) == ()
    cached = rounds_of(Experiment.CACHE, seed=1, prefix_tokens=1500)
    assert [call.arm for (call,) in cached[:2]] == ["cold", "warm"]
    prefixes = [call.recipe.prefix for (call,) in cached]
    assert prefixes[::2] == prefixes[1::2]
    assert len(set(prefixes)) == CACHE_PAIRS
    assert cost_of(cached) == 2 * CACHE_PAIRS * (1500 + 16)


def test_a_prefix_is_as_long_as_noise_asks_for_and_the_budget_allows() -> None:
    assert prefix_for(prompt_token_s=None, noise_s=None, most=9999) == 2048
    assert prefix_for(prompt_token_s=20e-6, noise_s=0.015, most=9999) == 3000
    assert prefix_for(prompt_token_s=20e-6, noise_s=0.0, most=9999) == 1024
    assert prefix_for(prompt_token_s=1e-6, noise_s=0.1, most=99_999) == 8192
    assert prefix_for(prompt_token_s=1e-6, noise_s=0.1, most=3000) == 3000
    assert prefix_for(prompt_token_s=0.0, noise_s=0.1, most=500) == 1024


def played(experiment: Experiment, provider: Provider | None = None) -> list[Trial]:
    provider = provider or Provider()
    rounds = rounds_of(experiment, seed=2, prefix_tokens=2000)
    return [provider.answer(call, len(each) - 1) for each in rounds for call in each]


def test_code_that_streams_faster_is_a_draft() -> None:
    found = readings.drafts(played(Experiment.SPECULATION, Provider(code=1.2)))
    assert found is not None
    assert found.found
    assert found.ratio.value == pytest.approx(1.2, rel=0.01)
    assert (found.prose_tps, found.code_tps) == (pytest.approx(100, rel=0.01), pytest.approx(120, rel=0.01))
    assert (found.tokens_per_read, found.looseness, found.discrete) == (1.0, None, False)
    plain = readings.drafts(played(Experiment.SPECULATION, Provider(code=1.03)))
    assert plain is not None
    assert not plain.found


def stream(call: Call, *, tps: float, tokens: list[float], gaps: list[float]) -> Trial:
    stamps = [0.2]
    for gap in gaps:
        stamps.append(stamps[-1] + gap)
    return a_trial(call, tps=tps, stamps_s=tuple(stamps), tokens=(1.0, *tokens))


@pytest.mark.parametrize(("buffered", "found"), [(False, True), (True, False)])
def test_a_weak_draft_shows_where_reads_hold_more_tokens_that_did_not_wait_for_them(*, buffered: bool, found: bool) -> None:
    chance, trials = Random(4), list[Trial]()
    for (call,) in rounds_of(Experiment.SPECULATION, seed=2):
        tokens = [float(chance.choice((1, 1, 2, 3))) for _ in range(30)]
        gaps = [0.01 * (n if buffered else 1) * chance.uniform(0.95, 1.05) for n in tokens]
        tps = 107.5 * (1 + 0.05 * math.cos(call.pair)) if call.arm == "code" else 100.0
        trials.append(stream(call, tps=tps, tokens=tokens, gaps=gaps))
    said = readings.drafts(trials)
    assert said is not None
    assert (said.discrete, said.found) == (found, found)
    assert said.ratio.low is not None
    assert 1.0 < said.ratio.low < 1.05


def test_too_few_whole_pairs_say_nothing() -> None:
    trials = played(Experiment.SPECULATION)
    assert readings.drafts(trials[:11]) is None
    assert readings.drafts([t for t in trials if t.arm == "code"]) is None
    spoilt = [a_trial(c, spoilt=True) for (c,) in rounds_of(Experiment.SPECULATION, seed=2)]
    assert readings.drafts(spoilt) is None
    assert readings.hits(played(Experiment.CACHE)[:10]) is None
    assert readings.prefill(played(Experiment.LENGTHS)[:7]) is None
    one_length = [t for t in played(Experiment.LENGTHS) * 3 if t.arm == "64"]
    assert readings.prefill(one_length) is None
    assert readings.sharing([t for t in played(Experiment.STREAMS) if t.arm != "2"]) is None
    assert readings.course(played(Experiment.SPECULATION)[:6]) is None


def test_a_stream_without_reads_counts_as_one_token_a_read() -> None:
    bare = [a_trial(c, stamps_s=(), tokens=()) for (c,) in rounds_of(Experiment.SPECULATION, seed=2)]
    said = readings.drafts(bare)
    assert said is not None
    assert (said.tokens_per_read, said.prose_tokens_per_read) == (1.0, 1.0)
    assert readings.course(bare) is None
    at_once = [a_trial(c, stamps_s=(0.2,) * 20) for (c,) in rounds_of(Experiment.SPECULATION, seed=2)]
    even = readings.course(at_once)
    assert even is not None
    assert even.unevenness == 1.0


def test_prefill_is_told_from_waiting() -> None:
    found = readings.prefill(played(Experiment.LENGTHS, Provider(start_s=0.3, token_s=50e-6)))
    assert found is not None
    assert found.prompt_token_s == pytest.approx(50e-6, rel=0.05)
    assert found.start_s == pytest.approx(0.32 + 64 * 50e-6, rel=0.02)
    assert found.noise_s < 0.01
    assert found.high_s < 0.01


def test_tokens_from_the_cache_do_not_count_as_prefill() -> None:
    trials = [
        a_trial(
            c,
            ttft_s=0.1 + 50e-6 * c.recipe.prompt_tokens / 2,
            cached_tokens=c.recipe.prompt_tokens // 2,
            prompt_tokens=None if c.pair else c.recipe.prompt_tokens,
        )
        for (c,) in rounds_of(Experiment.LENGTHS, seed=2)
    ]
    found = readings.prefill(trials)
    assert found is not None
    assert found.prompt_token_s == pytest.approx(50e-6, rel=0.05)


def test_a_repeated_prefix_that_comes_sooner_is_a_cache() -> None:
    found = readings.hits(played(Experiment.CACHE, Provider(warm=0.9, token_s=50e-6)))
    assert found is not None
    assert found.found
    assert found.saved.value == pytest.approx(0.09, rel=0.05)
    assert (found.reported, found.answered, found.prefix_tokens) == (0.0, 1.0, 2000.0)
    none = readings.hits(played(Experiment.CACHE, Provider(warm=0.0)))
    assert none is not None
    assert not none.found


def test_a_cache_that_the_server_reports_needs_no_timing() -> None:
    trials = [a_trial(c, cached_tokens=1500 if c.arm == "warm" else 0) for (c,) in rounds_of(Experiment.CACHE, seed=2)]
    found = readings.hits(trials)
    assert found is not None
    assert (found.reported, found.found, found.saved.value) == (1.0, True, 0.0)


def test_streams_at_once_that_slow_each_other_are_seen() -> None:
    found = readings.sharing(played(Experiment.STREAMS, Provider(four=1.9)))
    assert found is not None
    assert found.two == pytest.approx(1.3, rel=0.03)
    assert found.four == pytest.approx(1.9, rel=0.03)


def test_a_course_tells_uneven_gaps_and_speeds_that_vary() -> None:
    calm = readings.course(played(Experiment.SPECULATION, Provider(noise=0.01)))
    assert calm is not None
    assert calm.unevenness == pytest.approx(1.0)
    assert calm.sway is not None
    assert calm.sway < 0.02
    wild = [
        stream(c, tps=100 * math.exp(0.3 * (-1) ** i), tokens=[1.0] * 20, gaps=[0.01, 0.01, 0.01, 0.05] * 5)
        for i, (c,) in enumerate(rounds_of(Experiment.SPECULATION, seed=2))
    ]
    found = readings.course(wild)
    assert found is not None
    assert found.unevenness == pytest.approx(2.0)


def test_a_trial_is_what_the_measurement_says() -> None:
    (call,) = rounds_of(Experiment.SPECULATION, seed=2)[0]
    good = Measurement(
        outcome=Outcome.OK, error_class=ErrorClass.NONE, ttft_s=0.2, decode_tps=50.0, prompt_tokens=61, output_tokens=128,
        phases=Phases(connect_s=0.01), server_timings={"queue_s": 0.05},
        reliable=Reliable(ttft=True, tps=True),
    )  # fmt: skip
    trial = trial_of(call, Reading(measurement=good, read_stamps_s=(0.2, 0.3), read_tokens=(1.0, 2.0)))
    assert (trial.ok, trial.ttft_s, trial.tps, trial.tokens_used, trial.queue_s, trial.connect_s) == (
        True, 0.2, 50.0, 189, 0.05, 0.01,
    )  # fmt: skip
    assert (trial.stamps_s, trial.tokens, trial.arm) == ((0.2, 0.3), (1.0, 2.0), "code")
    silent = Measurement(outcome=Outcome.OK, error_class=ErrorClass.NONE, notes=("contaminated",), ttft_s=0.2)
    spoilt = trial_of(call, Reading(measurement=silent))
    assert (spoilt.ok, spoilt.spoilt, spoilt.ttft_s, spoilt.tokens_used) == (False, True, None, call.tokens)
    late = trial_of(call, Reading(measurement=replace(good, notes=("contaminated",), reliable=Reliable(ttft=False, tps=True))))
    assert (late.ok, late.ttft_s, late.tps) == (True, None, 50.0)
    cached = trial_of(call, Reading(measurement=replace(good, reliable=Reliable(ttft=False, tps=False))))
    assert (cached.ok, cached.ttft_s, cached.tps) == (True, 0.2, None)
    failed = trial_of(call, Reading(measurement=Measurement(outcome=Outcome.TIMEOUT, error_class=ErrorClass.TIMEOUT)))
    assert (failed.ok, failed.outcome, failed.tokens_used) == (False, "timeout", 0)
