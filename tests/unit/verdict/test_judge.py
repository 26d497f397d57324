"""A verdict says what its evidence carries, and no more: unknown is a state, and never ok."""

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.expectation.model import Basis, Confidence
from app.measurement.model import AGAINST_PROVIDER, Outcome
from app.measurement.window import Sample
from app.targets.model import Connection, Slo, Thresholds
from app.verdict.model import Severity, State
from tests.support.verdicts import NOW, a_sample, a_target, an_expectation, failures, speeds, verdict_of


@pytest.mark.parametrize(
    ("ratio", "state", "severity"),
    [
        (0.39, State.BELOW_EXPECTATION, Severity.CRITICAL),
        (0.40, State.BELOW_EXPECTATION, Severity.WARNING),
        (0.59, State.BELOW_EXPECTATION, Severity.WARNING),
        (0.60, State.OK, Severity.NONE),
        (1.25, State.OK, Severity.NONE),
        (1.26, State.OK, Severity.NONE),
        (2.00, State.OK, Severity.NONE),
        (2.01, State.ABOVE_CEILING, Severity.WARNING),
    ],
)
def test_the_ratio_decides_exactly_as_published(ratio: float, state: State, severity: Severity) -> None:
    verdict = verdict_of(speeds(*[100 * ratio] * 5), expectation=an_expectation())
    assert (verdict.state, verdict.severity) == (state, severity)
    assert verdict.ratio == pytest.approx(ratio)
    assert verdict.ceiling_ratio == pytest.approx(ratio / 2)
    assert (verdict.expected, verdict.ceiling, verdict.basis) == (100.0, 200.0, Basis.DEPLOYMENT)
    assert ("tuned_or_speculative" in verdict.reasons) == (1.25 < ratio <= 2)
    assert verdict.assumptions == ("context 2048",)


def test_thresholds_are_the_users() -> None:
    thresholds = Thresholds(red_below=0.1, amber_below=0.2, tuned_above=1.1)
    assert verdict_of(speeds(*[30.0] * 5), expectation=an_expectation(), thresholds=thresholds).state is State.OK
    assert (
        "tuned_or_speculative" in verdict_of(speeds(*[115.0] * 5), expectation=an_expectation(), thresholds=thresholds).reasons
    )


def test_the_median_is_judged_and_one_outlier_is_not() -> None:
    verdict = verdict_of(speeds(100, 101, 102, 103, 104, 5, 99), expectation=an_expectation())
    assert (verdict.state, verdict.observed, verdict.samples) == (State.OK, 101, 7)
    assert (verdict.observed_low, verdict.observed_high) == (5, 104)


def test_four_samples_are_not_enough() -> None:
    verdict = verdict_of(speeds(*[10.0] * 4), expectation=an_expectation(), target=a_target())
    assert (verdict.state, verdict.severity, verdict.observed) == (State.UNKNOWN, Severity.NONE, None)
    assert verdict.reasons[0] == "too_few_samples"
    assert (verdict.expected, verdict.samples) == (100.0, 4)


def test_unreliable_contaminated_and_the_other_connections_samples_stay_out() -> None:
    good = speeds(*[100.0] * 5)
    spoiled = (
        *speeds(*[1.0] * 9, tps_reliable=False),
        *speeds(*[1.0] * 9, contaminated=True),
        *speeds(*[1.0] * 9, connection=Connection.WARM),
        *failures(9, contaminated=True),
    )
    verdict = verdict_of((*good, *spoiled), expectation=an_expectation())
    assert (verdict.state, verdict.observed, verdict.samples) == (State.OK, 100.0, 5)
    assert {"contaminated_samples_left_out", "unreliable_samples_left_out"} <= set(verdict.reasons)
    assert "18 runs were left out because the monitor itself was late" in verdict.explanation
    warm = verdict_of((*good, *spoiled), expectation=an_expectation(), target=a_target(connection=Connection.WARM))
    assert warm.observed == 1.0


def test_samples_older_than_the_window_are_no_evidence() -> None:
    old = tuple(a_sample(10.0, ago_s=901 + i) for i in range(9))
    verdict = verdict_of((*old, a_sample(100.0)), expectation=an_expectation())
    assert (verdict.state, verdict.window_s) == (State.UNKNOWN, 900.0)


def test_a_slow_target_has_a_window_that_holds_enough_samples() -> None:
    hourly = tuple(a_sample(100.0, ago_s=60 + 3600 * i) for i in range(7))
    verdict = verdict_of(hourly, expectation=an_expectation(), target=a_target(every_s=3600.0))
    assert (verdict.state, verdict.samples, verdict.window_s) == (State.OK, 7, 25200.0)


def test_a_stopped_worker_makes_everything_unknown() -> None:
    samples = speeds(*[10.0] * 9)
    later = NOW + timedelta(seconds=200)
    verdict = verdict_of(samples, expectation=an_expectation(), now=later)
    assert (verdict.state, verdict.reasons[0], verdict.fit_for) == (State.UNKNOWN, "stale", ())
    assert "is the worker of this location running?" in verdict.explanation
    assert verdict_of(samples, now=NOW + timedelta(days=1)).reasons[0] == "stale"
    assert verdict_of(()).reasons[0] == "no_data"
    assert verdict_of(samples, target=a_target(paused=True)).reasons[0] == "paused"


def test_low_confidence_never_flags() -> None:
    for speed in (1.0, 1000.0):
        verdict = verdict_of(speeds(*[speed] * 9), expectation=an_expectation(confidence=Confidence.LOW))
        assert (verdict.state, verdict.confidence) == (State.OK, Confidence.LOW)
        assert "low_confidence" in verdict.reasons
        assert verdict.ratio == speed / 100


def test_a_model_that_does_not_fit_is_said_to_be_impossible_and_flags_nothing() -> None:
    verdict = verdict_of(speeds(*[10.0] * 9), expectation=an_expectation(fits=False))
    assert verdict.state is State.OK
    assert "does_not_fit_memory" in verdict.reasons
    assert "does not fit the memory" in verdict.explanation


@pytest.mark.parametrize(
    ("speed", "state", "expected", "ratio"),
    [
        (15.0, State.BELOW_EXPECTATION, 50.0, 0.3),
        (40.0, State.OK, 50.0, 0.8),
        (80.0, State.OK, None, None),
        (300.0, State.OK, 200.0, 1.5),
        (500.0, State.ABOVE_CEILING, 200.0, 2.5),
    ],
)
def test_an_unknown_deployment_is_judged_by_the_ends_of_what_is_possible(
    speed: float, state: State, expected: float | None, ratio: float | None
) -> None:
    physics = an_expectation(None, basis=Basis.FEASIBLE_RANGE, expected_range_tps=(50.0, 200.0), ceiling_tps=400.0)
    verdict = verdict_of(speeds(*[speed] * 5), expectation=physics)
    assert (verdict.state, verdict.expected, verdict.ratio) == (state, expected, ratio)
    assert ("within_feasible_range" in verdict.reasons) == (ratio is None)
    assert "possible" in verdict.explanation


def test_the_layer_law_has_no_ceiling() -> None:
    physics = an_expectation(basis=Basis.LAYER_LAW, ceiling_tps=None)
    verdict = verdict_of(speeds(*[900.0] * 5), expectation=physics)
    assert (verdict.state, verdict.basis, verdict.ceiling_ratio) == (State.OK, Basis.LAYER_LAW, None)
    assert "by the time its layers take" in verdict.explanation


def test_an_expectation_that_says_nothing_of_speed_is_none() -> None:
    verdict = verdict_of(speeds(*[10.0] * 5), expectation=an_expectation(None))
    assert (verdict.state, verdict.basis) == (State.OK, None)
    assert "no_expectation" in verdict.reasons


@pytest.mark.parametrize("outcome", sorted(AGAINST_PROVIDER))
def test_failures_of_the_provider_make_it_unavailable(outcome: Outcome) -> None:
    verdict = verdict_of((*speeds(100.0, 100.0), *failures(3, outcome, error_class="server_error")))
    assert (verdict.state, verdict.severity) == (State.UNAVAILABLE, Severity.CRITICAL)
    assert verdict.reasons[:2] == ("unavailable", "error_server_error")
    assert "3 of 5 calls went wrong at the provider (server_error)" in verdict.explanation


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - AGAINST_PROVIDER - {Outcome.OK}))
def test_what_is_not_the_providers_fault_never_makes_it_unavailable(outcome: Outcome) -> None:
    verdict = verdict_of(failures(50, outcome, error_class=str(outcome)))
    assert (verdict.state, verdict.severity) == (State.UNKNOWN, Severity.NONE)
    assert verdict_of((*speeds(*[100.0] * 5), *failures(50, outcome))).state is State.OK


def test_quota_and_hidden_reasoning_are_kinds_of_their_own() -> None:
    quota = verdict_of(failures(9, Outcome.RATE_LIMITED, error_class="quota"))
    assert "quota" in quota.reasons
    assert "quota is used up (9 times)" in quota.explanation
    spent = verdict_of(failures(9, Outcome.EMPTY, notes=("budget_spent_on_reasoning",)))
    assert (spent.state, "budget" in spent.reasons) == (State.UNKNOWN, True)
    assert "budget" in verdict_of(failures(9, Outcome.EMPTY, output_tokens=128)).reasons
    assert verdict_of(failures(9, Outcome.EMPTY, output_tokens=0)).state is State.UNAVAILABLE
    limited = verdict_of((*speeds(*[100.0] * 5), *failures(2, Outcome.RATE_LIMITED, error_class="rate_limited")))
    assert "2 runs were rate-limited." in limited.explanation


def test_two_failures_are_too_few_attempts_and_half_is_still_available() -> None:
    assert verdict_of(failures(2)).state is State.UNKNOWN
    half = verdict_of((*speeds(*[100.0] * 5), *failures(5)))
    assert half.state is State.OK
    assert "some_failures" in half.reasons
    assert "5 of 10 calls failed." in half.explanation


def test_a_promise_of_speed_is_held_against_the_target() -> None:
    target = a_target(slo=Slo(tps_p50=300.0))
    missed = verdict_of(speeds(*[200.0] * 5), target=target)
    assert (missed.state, missed.severity, missed.basis) == (State.BELOW_EXPECTATION, Severity.WARNING, Basis.SLO)
    assert "That is 67 % of the 300 tokens/s promised." in missed.explanation
    assert verdict_of(speeds(*[100.0] * 5), target=target).severity is Severity.CRITICAL
    assert verdict_of(speeds(*[300.0] * 5), target=target).state is State.OK
    both = verdict_of(speeds(*[110.0] * 5), target=target, expectation=an_expectation(200.0))
    assert (both.severity, both.basis) == (Severity.CRITICAL, Basis.SLO)
    assert {"below_expectation", "slo_tps_missed"} <= set(both.reasons)
    physics = verdict_of(speeds(*[250.0] * 5), target=target, expectation=an_expectation(1000.0))
    assert (physics.severity, physics.basis) == (Severity.CRITICAL, Basis.DEPLOYMENT)


def test_a_promised_p95_is_tested_long_before_it_can_be_estimated() -> None:
    target = a_target(slo=Slo(ttft_p95_s=0.5))
    slow = [a_sample(100.0, ttft_s=0.9, ago_s=25 + i) for i in range(2)]
    one = verdict_of((*speeds(*[100.0] * 4), slow[0]), target=target)
    two = verdict_of((*speeds(*[100.0] * 3), *slow), target=target)
    assert (one.state, two.state) == (State.OK, State.SLOW_FIRST_TOKEN)
    assert (two.severity, two.basis) == (Severity.WARNING, Basis.SLO)
    assert "more than one call in twenty takes over the 500 ms promised" in two.explanation
    all_slow = verdict_of(speeds(*[100.0] * 5, ttft_s=0.9), target=target)
    assert all_slow.severity is Severity.CRITICAL


def test_a_first_token_far_beyond_physics_is_slow() -> None:
    late = verdict_of(speeds(*[100.0] * 5, ttft_s=1.2), expectation=an_expectation())
    assert (late.state, late.severity) == (State.SLOW_FIRST_TOKEN, Severity.WARNING)
    assert "while reading the prompt should take 50 ms at most" in late.explanation
    assert verdict_of(speeds(*[100.0] * 5, ttft_s=1.0, connect_s=None), expectation=an_expectation()).state is State.OK
    unsure = an_expectation(confidence=Confidence.LOW)
    assert verdict_of(speeds(*[100.0] * 5, ttft_s=9.0), expectation=unsure).state is State.OK


def test_slower_than_its_own_past_is_regressed() -> None:
    past = {"baseline": tuple(a_sample(100.0, ago_s=90_000 + 5000 * i) for i in range(20))}
    slower = verdict_of(speeds(*[69.0] * 6), past=past)
    assert (slower.state, slower.severity, slower.basis, slower.ratio) == (
        State.REGRESSED,
        Severity.WARNING,
        Basis.BASELINE,
        0.69,
    )
    assert "69 % of the 100 tokens/s of its own past" in slower.explanation
    assert verdict_of(speeds(*[71.0] * 6), past=past).state is State.OK
    assert verdict_of(speeds(*[69.0] * 5), past=past).state is State.REGRESSED
    noisy = verdict_of(speeds(60, 60, 60, 69, 110, 120, 110), past=past)
    assert noisy.state is State.OK
    short = {"baseline": past["baseline"][:19]}
    assert verdict_of(speeds(*[10.0] * 6), past=short).state is State.OK


def test_the_first_finding_names_the_verdict_and_the_others_are_reasons() -> None:
    past = {"baseline": tuple(a_sample(500.0, ago_s=90_000 + 5000 * i) for i in range(20))}
    verdict = verdict_of(speeds(*[20.0] * 6, ttft_s=5.0), past=past, expectation=an_expectation())
    assert verdict.state is State.BELOW_EXPECTATION
    assert {"also_slow_first_token", "also_regressed", "host_memory_spill_fits"} <= set(verdict.reasons)


def test_first_tokens_alone_can_be_judged() -> None:
    verdict = verdict_of(speeds(*[100.0] * 5, tps_reliable=False))
    assert (verdict.state, verdict.observed, verdict.samples) == (State.OK, None, 5)
    assert "no_reliable_speed" in verdict.reasons


def test_the_best_location_separates_the_network_from_the_provider() -> None:
    here = speeds(*[30.0] * 5)
    fine, slow = {"fra": speeds(*[100.0] * 5)}, {"fra": speeds(*[30.0] * 5)}
    alone = verdict_of(here, expectation=an_expectation(), past={"locations": fine})
    assert (alone.severity, alone.state) == (Severity.CRITICAL, State.BELOW_EXPECTATION)
    assert {"only_here", "network_suspected"} <= set(alone.reasons)
    both = verdict_of(here, expectation=an_expectation(), past={"locations": slow})
    assert "seen_from_several_locations" in both.reasons
    quiet = verdict_of(here, expectation=an_expectation(), past={"locations": fine}, min_locations=2)
    assert (quiet.state, quiet.severity) == (State.BELOW_EXPECTATION, Severity.NONE)
    assert "too_few_locations" in quiet.reasons
    loud = verdict_of(here, expectation=an_expectation(), past={"locations": {**slow, "sin": fine["fra"]}}, min_locations=2)
    assert loud.severity is Severity.CRITICAL
    dark = verdict_of(here, expectation=an_expectation(), past={"locations": {"fra": ()}}, min_locations=2)
    assert dark.severity is Severity.CRITICAL
    assert "only_here" not in dark.reasons


@pytest.mark.parametrize(
    ("locations", "word"), [({"fra": speeds(*[100.0] * 5)}, "only_here"), ({"fra": failures(3)}, "seen_from_several_locations")]
)
def test_availability_and_first_tokens_are_weighed_over_locations_too(
    locations: dict[str, tuple[Sample, ...]], word: str
) -> None:
    assert word in verdict_of(failures(3), past={"locations": locations}).reasons
    late = verdict_of(
        speeds(*[100.0] * 5, ttft_s=9.0), expectation=an_expectation(), past={"locations": {"fra": speeds(*[100.0] * 5)}}
    )
    assert "only_here" in late.reasons


def test_since_lasts_as_long_as_the_state() -> None:
    first = verdict_of(speeds(*[30.0] * 5), expectation=an_expectation())
    later = NOW + timedelta(seconds=60)
    same = verdict_of(speeds(*[30.0] * 5), expectation=an_expectation(), past={"previous": first}, now=later)
    other = verdict_of(speeds(*[100.0] * 5), expectation=an_expectation(), past={"previous": first}, now=later)
    assert (first.since, same.since, other.since) == (NOW, NOW, later)


def test_fitness_follows_stated_limits() -> None:
    assert verdict_of(speeds(*[501.0] * 5, ttft_s=0.1)).fit_for == (
        "voice",
        "interactive_chat",
        "coding_agents",
        "long_generation",
    )
    assert verdict_of(speeds(*[101.0] * 5)).fit_for == ("interactive_chat", "coding_agents")
    assert verdict_of(speeds(*[30.0] * 5)).fit_for == ()
    assert verdict_of(failures(5)).fit_for == ()
    assert "Good enough for interactive chat and coding and agents." in verdict_of(speeds(*[101.0] * 5)).explanation
    mostly = (*speeds(*[20.0] * 19, ttft_s=0.1), a_sample(20.0, ttft_s=0.9))
    assert verdict_of(mostly).fit_for == ("voice",)


def test_a_red_verdict_explains_itself_with_every_figure() -> None:
    verdict = verdict_of(speeds(*[15.0] * 9), expectation=an_expectation(quantization="FP8"))
    for words in (
        "groq/gpt from default generates slower than it should.",
        "It generates 15 tokens/s (median of 9 runs in 15 min, 95 % interval 15 to 15).",
        "That is 15 % of the 100 tokens/s expected of llama at FP8 on 1 x H100; the ceiling is 200.",
        "Its first token comes after 200 ms (median).",
        "Weights spilled to host memory would look like this.",
        "Assumed: context 2048.",
    ):
        assert words in verdict.explanation
    bare = verdict_of(speeds(*[15.0] * 9), expectation=an_expectation(hardware=None))
    assert "expected of this deployment" in bare.explanation
    vague = verdict_of(speeds(*[15.0] * 9), expectation=an_expectation(devices=None, model_spec=None))
    assert "expected of gpt on H100" in vague.explanation
    impossible = verdict_of(speeds(*[999.0] * 9), expectation=an_expectation())
    assert "Speculative decoding" in impossible.explanation


def test_what_is_read_of_the_past_reaches_back_all_windows() -> None:
    assert Thresholds().past_for(60.0) == 2700.0
    assert Thresholds().past_for(3600.0) == 3 * 25200.0


outcomes = st.sampled_from(list(Outcome))
samples = st.lists(
    st.builds(
        a_sample,
        st.none() | st.floats(0.5, 2000.0),
        ago_s=st.floats(-100.0, 4000.0),
        outcome=outcomes,
        contaminated=st.booleans(),
        ttft_s=st.none() | st.floats(0.001, 30.0),
        connection=st.sampled_from(list(Connection)),
        notes=st.sampled_from([(), ("budget_spent_on_reasoning",)]),
    ),
    max_size=40,
)
expectations = st.none() | st.builds(
    an_expectation,
    st.none() | st.floats(0.1, 3000.0),
    confidence=st.sampled_from(list(Confidence)),
    basis=st.sampled_from(list(Basis)),
    expected_range_tps=st.none() | st.tuples(st.floats(0, 100.0), st.floats(100.0, 1000.0)),
    fits=st.sampled_from([None, True, False]),
)


@given(samples, expectations, st.randoms(), st.sampled_from([None, Slo(ttft_p95_s=0.5, tps_p50=100.0)]))
def test_the_order_of_samples_changes_nothing(
    drawn: list[Sample], physics: object, chance: random.Random, slo: Slo | None
) -> None:
    shuffled = list(drawn)
    chance.shuffle(shuffled)
    target = a_target(slo=slo)
    assert verdict_of(drawn, expectation=physics, target=target) == verdict_of(shuffled, expectation=physics, target=target)


@given(samples, expectations)
def test_every_verdict_is_consistent_with_its_evidence(drawn: list[Sample], physics: object) -> None:
    verdict = verdict_of(drawn, expectation=physics)
    if not drawn:
        assert verdict.state is State.UNKNOWN
    if verdict.state is State.OK:
        assert verdict.samples >= 5
        assert verdict.severity is Severity.NONE
    if verdict.state is State.UNKNOWN:
        assert verdict.severity is Severity.NONE
    if verdict.observed is not None and verdict.ratio is not None:
        assert verdict.ratio == verdict.observed / verdict.expected
    assert verdict.explanation[-1] in ".?"
    assert len(set(verdict.reasons)) == len(verdict.reasons)


@given(
    st.lists(st.floats(0.5, 2000.0), max_size=40),
    expectations,
    st.floats(181.0, 1e6),
    st.sampled_from([None, Slo(ttft_p95_s=0.5, tps_p50=100.0)]),
)
def test_a_target_without_fresh_data_is_never_ok_whatever_is_known_of_it(
    speeds_once: list[float], physics: object, ago_s: float, slo: Slo | None
) -> None:
    old = tuple(a_sample(value, ago_s=ago_s + 3600.0 * index) for index, value in enumerate(speeds_once))
    elsewhere = {"fra": speeds(*[100.0] * 9)}
    verdict = verdict_of(old, expectation=physics, target=a_target(slo=slo), past={"baseline": old, "locations": elsewhere})
    assert (verdict.state, verdict.severity, verdict.fit_for) == (State.UNKNOWN, Severity.NONE, ())


@given(samples, st.floats(1.0, 1000.0), st.floats(1.01, 3.0))
def test_a_higher_expectation_never_softens_the_verdict(drawn: list[Sample], expected: float, factor: float) -> None:
    def harshness(of: float) -> int:
        verdict = verdict_of(drawn, expectation=an_expectation(of, ceiling_tps=None, prefill_s=None))
        return [Severity.NONE, Severity.WARNING, Severity.CRITICAL].index(verdict.severity)

    assert harshness(expected * factor) >= harshness(expected)
