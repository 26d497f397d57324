"""Small samples are not over-read: intervals cover what they claim, and a figure that needs more samples is null."""

import random
from math import comb
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.verdict.statistics import exceeds_share, interval_rank, median_interval, percentile_95

figures = st.lists(st.floats(0.1, 1e4), min_size=1, max_size=60)


@given(figures, st.randoms())
def test_the_median_and_its_interval_do_not_care_for_order(values: list[float], chance: random.Random) -> None:
    shuffled = list(values)
    chance.shuffle(shuffled)
    assert median_interval(shuffled) == median_interval(values)


@given(figures)
def test_the_interval_encloses_the_median_and_exists_from_six_values_on(values: list[float]) -> None:
    found = median_interval(values)
    assert found is not None
    assert (found.value, found.n) == (median(values), len(values))
    if len(values) < 6:
        assert (found.low, found.high) == (None, None)
    else:
        assert found.low is not None
        assert found.high is not None
        assert min(values) <= found.low <= found.value <= found.high <= max(values)


@pytest.mark.parametrize(
    ("n", "rank"), [(1, 0), (5, 0), (6, 1), (8, 1), (9, 2), (10, 2), (15, 4), (20, 6), (50, 18), (100, 40)]
)
def test_the_ranks_are_those_of_the_published_tables(n: int, rank: int) -> None:
    assert interval_rank(n) == rank


@pytest.mark.parametrize("n", [6, 15, 50, 600])
def test_the_interval_covers_at_least_95_percent_and_no_narrower_one_would(n: int) -> None:
    rank = interval_rank(n)
    tail = 2 * sum(comb(n, k) for k in range(rank)) / 2**n
    assert tail <= 0.05 < tail + 2 * comb(n, rank) / 2**n


def test_nothing_has_no_median() -> None:
    assert median_interval(()) is None


def test_a_p95_needs_130_samples() -> None:
    assert percentile_95(range(129)) is None
    assert percentile_95(range(201)) == 190.0
    assert percentile_95([1.0] * 130) == 1.0


def test_two_slow_calls_of_five_break_a_p95_and_one_does_not() -> None:
    assert [exceeds_share(over, 5) for over in range(4)] == [False, False, True, True]
    assert not exceeds_share(8, 100)
    assert exceeds_share(10, 100)
