"""A sketch is a distribution up to 2 %, and sketches add up exactly."""

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.measurement.sketch import ERROR, Sketch, merged, sketch_of

values = st.lists(st.floats(min_value=1e-6, max_value=1e5), max_size=60)
calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
fractions = st.sampled_from([0.0, 0.25, 0.5, 0.9, 0.95, 0.99, 1.0])


def exact(ordered: list[float], fraction: float) -> float:
    """As Postgres' percentile_cont."""
    rank = fraction * (len(ordered) - 1)
    low, high = ordered[math.floor(rank)], ordered[math.ceil(rank)]
    return low + (high - low) * (rank - math.floor(rank))


@calmly
@given(values.filter(bool), fractions)
def test_a_percentile_is_within_two_percent_of_the_one_of_the_values(numbers: list[float], fraction: float) -> None:
    found = sketch_of(numbers).percentile(fraction)
    true = exact(sorted(numbers), fraction)
    assert found is not None
    assert abs(found - true) <= ERROR * true * (1 + 1e-9)


@calmly
@given(values, values, values)
def test_the_sketch_of_a_whole_is_the_sum_of_those_of_its_parts_in_any_order(
    a: list[float], b: list[float], c: list[float]
) -> None:
    whole, parts = sketch_of([*a, *b, *c]), [sketch_of(each) for each in (a, b, c)]
    for made in (merged(parts), merged(reversed(parts)), merged([merged(parts[:2]), parts[2]])):
        assert (dict(made.counts), made.n, made.low, made.high) == (dict(whole.counts), whole.n, whole.low, whole.high)
        assert math.isclose(made.total, whole.total, rel_tol=1e-12)


@calmly
@given(values.filter(bool))
def test_least_greatest_and_mean_are_exact(numbers: list[float]) -> None:
    sketch = sketch_of(numbers)
    assert (sketch.percentile(0.0), sketch.percentile(1.0)) == (min(numbers), max(numbers))
    assert sketch.mean is not None
    assert math.isclose(sketch.mean, math.fsum(numbers) / len(numbers), rel_tol=1e-9)


def test_nothing_has_no_percentile_and_no_mean() -> None:
    assert merged([]) == Sketch()
    assert (Sketch().mean, Sketch().percentile(0.5)) == (None, None)


def test_a_decade_is_58_buckets_and_zero_is_a_value() -> None:
    decade = sketch_of(10 ** (1 + k / 10000) for k in range(10000))
    assert 57 <= len(decade.counts) <= 59
    assert sketch_of([0.0, 0.0]).percentile(0.5) == 0.0
