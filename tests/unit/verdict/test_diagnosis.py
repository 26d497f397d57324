"""A diagnosis names causes by what it saw, says what it could not see, and spends no more than it may."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.expectation.model import Basis, Confidence
from app.verdict.diagnosis.causes import LIKELY, ORDINARY, SLOWING, SPEEDING, rank
from app.verdict.diagnosis.design import LENGTHS
from app.verdict.diagnosis.model import Before, Call, Cause, Diagnosis, Experiment, Sign, Trial
from app.verdict.diagnosis.report import WORDS, diagnosis_json
from app.verdict.diagnosis.report import before_of as before_of_report
from tests.support.diagnosis import Provider, a_trial, results_of, told_by
from tests.support.verdicts import an_expectation

HEALTHY: dict[str, float] = {"tps": 100.0, "start_s": 0.1, "token_s": 20e-6}
SPECULATES = HEALTHY | {"code": 1.5}
CACHES = HEALTHY | {"warm": 0.9}


def before_of(**figures: float) -> Before:
    return told_by(Provider(**figures).answer).now


def first(told: Diagnosis) -> Cause:
    return told.suspects[0].cause


@pytest.mark.parametrize(
    ("was", "now", "cause"),
    [
        (HEALTHY, {"start_s": 1.5}, Cause.QUEUE),
        (HEALTHY, {"tps": 17.0}, Cause.SPILL),
        (HEALTHY, {"tps": 60.0, "token_s": 50e-6}, Cause.SLOWER_MACHINE),
        (SPECULATES, {"tps": 70.0, "code": 1.0}, Cause.SPECULATION_OFF),
        (CACHES, {"warm": 0.0}, Cause.CACHE_LOST),
        (HEALTHY, {"rtt_s": 0.4}, Cause.NETWORK),
        (HEALTHY, {}, Cause.NOTHING),
    ],
    ids=lambda value: str(value) if isinstance(value, Cause) else "",
)
def test_each_cause_is_named_by_its_marks(was: dict[str, float], now: dict[str, float], cause: Cause) -> None:
    told = told_by(Provider(**{**was, **now}).answer, before=before_of(**was))
    assert first(told) is cause
    assert told.complaint == ("none" if cause is Cause.NOTHING else "slow")
    assert told.suspects[0].probability > 0.6
    assert sum(s.probability for s in told.suspects) == pytest.approx(1.0)
    if cause is not Cause.NOTHING:
        assert told.suspects[0].evidence
        assert WORDS[cause] in told.explanation


def uneven(call: Call, others: int) -> Trial:
    """Half as fast, with other people's prompts between the steps."""
    tps = 50.0 * (1 + 0.2 * (-1) ** (call.pair + (call.arm == "code")))
    stamps, at = [0.3], 0.3
    for i in range(24):
        at += 0.07 if i % 4 == 0 else 0.013
        stamps.append(at)
    return a_trial(call, tps=tps, ttft_s=0.3 + 20e-6 * call.recipe.prompt_tokens, stamps_s=tuple(stamps), tokens=(1.0,) * 25)


def test_a_crowded_replica_has_uneven_gaps_and_speeds_that_vary() -> None:
    told = told_by(uneven, before=before_of(**HEALTHY))
    assert first(told) is Cause.CONTENTION
    assert any("mean gap" in text for text in told.suspects[0].evidence)


def test_what_the_server_reports_of_its_queue_is_evidence() -> None:
    def queued(call: Call, others: int) -> Trial:
        return a_trial(call, ttft_s=0.9, queue_s=0.7)

    told = told_by(queued)
    assert first(told) is Cause.QUEUE
    assert "the server itself reports 700 ms in its queue" in told.suspects[0].evidence


def test_without_a_past_physics_is_what_speed_is_held_against() -> None:
    slow = told_by(Provider(tps=15.0).answer, expectation=an_expectation(100.0, prefill_s=(0.005, 0.02)))
    assert first(slow) is Cause.SPILL
    assert results_of(slow)["pace"].figures["ratio"] == pytest.approx(0.15, rel=0.02)
    just = told_by(Provider(tps=70.0).answer, expectation=an_expectation(100.0))
    assert just.complaint == "none"
    steep = told_by(Provider(tps=50.0, token_s=200e-6).answer, expectation=an_expectation(100.0, prefill_s=(0.005, 0.02)))
    assert first(steep) is Cause.SLOWER_MACHINE
    unsure = told_by(Provider(tps=15.0).answer, expectation=an_expectation(100.0, confidence=Confidence.LOW, prefill_s=None))
    assert results_of(unsure)["pace"].reason == "nothing_to_compare_with"
    silent = told_by(Provider(tps=15.0).answer, expectation=an_expectation(None))
    assert not results_of(silent)["pace"].ran


@pytest.mark.parametrize(("code", "cause"), [(1.6, Cause.SPECULATION), (1.0, Cause.OTHER_DEPLOYMENT)])
def test_a_speed_that_the_deployment_cannot_have_is_a_draft_or_another_deployment(code: float, cause: Cause) -> None:
    told = told_by(Provider(tps=150.0, code=code).answer, expectation=an_expectation(100.0))
    assert (told.complaint, first(told)) == ("fast", cause)
    over = told_by(Provider(tps=110.0, code=code).answer, expectation=an_expectation(100.0, ceiling_tps=105.0))
    assert over.complaint == "fast"


def test_inside_the_possible_range_nothing_is_fast_and_below_it_things_are_slow() -> None:
    physics = an_expectation(None, basis=Basis.FEASIBLE_RANGE, expected_range_tps=(80.0, 200.0), ceiling_tps=400.0)
    assert told_by(Provider(tps=150.0).answer, expectation=physics).complaint == "none"
    assert told_by(Provider(tps=20.0).answer, expectation=physics).complaint == "slow"
    assert told_by(Provider(tps=300.0).answer, expectation=physics).complaint == "fast"


def test_other_locations_are_heard() -> None:
    only_here = told_by(Provider(rtt_s=0.2).answer, only_here=True)
    assert first(only_here) is Cause.NETWORK
    assert results_of(only_here)["locations"].says == "other locations see nothing of it"
    everywhere = told_by(Provider().answer, only_here=False)
    assert results_of(everywhere)["locations"].figures == {"only_here": False}
    everything = told_by(Provider().answer, only_here=False, before=before_of(**HEALTHY))
    assert "Could not run" not in everything.explanation
    assert results_of(told_by(Provider().answer))["locations"].reason == "one_location"


def test_a_machine_of_ours_that_is_late_is_blamed_first() -> None:
    def late(call: Call, others: int) -> Trial:
        return a_trial(call, spoilt=call.pair % 2 == 0)

    told = told_by(late)
    assert first(told) is Cause.MONITOR
    assert told.complaint == "none"
    all_late = told_by(lambda call, others: a_trial(call, spoilt=True))
    assert {r.reason for r in all_late.results if r.test in set(Experiment)} == {"monitor_late"}


def test_the_budget_is_kept_and_what_it_does_not_carry_is_named() -> None:
    provider = Provider()
    told = told_by(provider.answer, budget_tokens=9000)
    assert told.tokens <= 9000
    assert [str(r.test) for r in told.results if r.reason == "budget"] == ["prompt_lengths", "prompt_cache"]
    assert "Could not run: prompt lengths (the budget does not carry it)" in told.explanation
    assert told.calls == len(provider.calls)
    assert {call.test for call in provider.calls} == {Experiment.SPECULATION, Experiment.STREAMS}


@given(st.integers(0, 200_000), st.integers(0, 50))
def test_no_budget_is_ever_exceeded(budget: int, seed: int) -> None:
    told = told_by(Provider().answer, budget_tokens=budget, seed=seed)
    assert told.tokens <= budget
    assert len(told.results) == len(Experiment) + 5


def test_a_provider_that_fails_is_not_called_on_and_on() -> None:
    provider = Provider()

    def refuses(call: Call, others: int) -> Trial:
        provider.calls.append(call)
        return Trial(test=call.test, arm=call.arm, pair=call.pair, outcome="rate_limited")

    told = told_by(refuses)
    assert len(provider.calls) == 3 + 7 + 3 + 3
    assert {r.reason for r in told.results if r.test in set(Experiment)} == {"rate_limited"}
    assert {r.test: r.reason for r in told.results if not r.ran and r.test not in set(Experiment)} == {
        "pace": "too_few", "evenness": "too_few", "network": "no_connections", "locations": "one_location",
    }  # fmt: skip
    assert told.complaint == "unknown"
    assert told.explanation.startswith("groq/gpt could not be examined.")


def test_the_providers_own_budget_stops_an_experiment() -> None:
    told = told_by(lambda call, others: Trial(test=call.test, arm=call.arm, pair=call.pair, outcome="skipped_budget"))
    assert {r.reason for r in told.results if r.test in set(Experiment)} == {"budget"}
    assert told.calls == 1 + 1 + 1 + 1


def test_too_few_calls_that_count_are_named_as_such() -> None:
    def mostly_failing(call: Call, others: int) -> Trial:
        good = call.pair % 2 == 0
        return a_trial(call) if good else Trial(test=call.test, arm=call.arm, pair=call.pair, outcome="provider_error")

    told = told_by(mostly_failing)
    assert results_of(told)["speculation"].reason == "too_few"
    assert results_of(told)["prompt_cache"].reason == "too_few"


def test_a_provider_is_sent_no_more_streams_at_once_than_it_may_be() -> None:
    sizes = list[int]()

    def crowded(call: Call, others: int) -> Trial:
        sizes.append(others + 1)
        return a_trial(call, tps=100.0 / (1 + 0.3 * others))

    two = told_by(crowded, most_streams=2)
    assert max(sizes) == 2
    assert results_of(two)["parallel_streams"].figures["four_over_one"] is None
    assert {s.name: s.holds for s in two.signs}["shares"] is True
    sizes.clear()
    one = told_by(crowded, most_streams=1)
    assert max(sizes) == 1
    assert results_of(one)["parallel_streams"].reason == "max_concurrency"


def test_only_what_was_asked_for_runs() -> None:
    told = told_by(Provider().answer, experiments=(Experiment.SPECULATION,), before=before_of(**HEALTHY))
    assert [str(r.test) for r in told.results if r.reason == "not_asked"] == [
        "parallel_streams",
        "prompt_lengths",
        "prompt_cache",
    ]
    assert results_of(told)["speculation"].ran
    alone = told_by(Provider(tps=15.0).answer, experiments=(Experiment.STREAMS,), before=before_of(**HEALTHY))
    assert first(alone) is Cause.SPILL
    assert alone.now.start_s is None


def test_an_inconclusive_experiment_is_no_sign() -> None:
    """Noise that hides a cache is no lost cache."""
    noisy = told_by(Provider(**CACHES, noise=0.9).answer, before=before_of(**CACHES))
    assert {s.name: s.holds for s in noisy.signs}["cache_fell"] is not True
    few = told_by(Provider(**HEALTHY).answer, before=Before(speculated=True, code_over_prose=1.5, cached=True))
    assert {s.name: s.holds for s in few.signs}["cache_fell"] is False


def test_the_report_says_what_else_the_provider_does() -> None:
    told = told_by(Provider(code=1.5, warm=0.9, start_s=1.5, token_s=200e-6).answer, before=before_of(**HEALTHY))
    assert "It decodes speculatively." in told.explanation
    assert "It caches prompts." in told.explanation
    body: dict[str, Any] = diagnosis_json(told)
    assert body["causes"][0]["cause"] == "queue"
    assert [test["test"] for test in body["tests"]][:4] == [str(e) for e in Experiment]
    assert body["not_run"] == [{"test": "locations", "reason": "one_location"}]
    assert body["figures"]["speculated"] is True
    assert body["tokens"] == told.tokens > 0
    assert set(body["signs"]) == set(ORDINARY)


def test_an_earlier_report_is_read_back_and_nonsense_in_it_is_unknown() -> None:
    told = told_by(Provider(code=1.5, warm=0.9).answer)
    document = json.loads(json.dumps(diagnosis_json(told)))
    assert before_of_report(document) == told.now
    assert before_of_report({}) == before_of_report({"figures": "none"}) == Before()
    odd = {"figures": {"prose_tps": "fast", "code_tps": True, "speculated": 1, "start_s": 2, "colour": 3.0}}
    assert before_of_report(odd) == Before(start_s=2)


def test_a_server_that_reported_hits_and_reports_none_has_lost_its_cache() -> None:
    before = Before(cached=True, cache_reported=True, cache_saves_s=-0.001, cache_prefix_tokens=2000.0)
    told = told_by(Provider(**HEALTHY).answer, before=before)
    assert first(told) is Cause.CACHE_LOST
    assert {s.name: s.holds for s in told.signs}["cache_fell"] is True


def test_rivals_are_named_where_they_are_close() -> None:
    told = told_by(Provider(tps=50.0).answer, before=before_of(**HEALTHY), experiments=(Experiment.STREAMS,))
    assert "Else " in told.explanation


signs = st.lists(
    st.builds(lambda name, holds: Sign(name=name, holds=holds, says=name), st.sampled_from(sorted(ORDINARY)), st.sampled_from([None, True, False])),
    max_size=len(ORDINARY), unique_by=lambda sign: sign.name,
)  # fmt: skip


@given(signs, st.sampled_from([SLOWING, SPEEDING]))
def test_probabilities_are_such_and_a_sign_that_was_not_seen_counts_for_nothing(
    seen: list[Sign], among: tuple[Cause, ...]
) -> None:
    ranked = rank(seen, among=among)
    assert sum(s.probability for s in ranked) == pytest.approx(1.0)
    assert [s.probability for s in ranked] == sorted((s.probability for s in ranked), reverse=True)
    assert {s.cause for s in ranked} == set(among)
    assert rank([s for s in seen if s.holds is not None], among=among) == ranked


def test_the_table_holds_probabilities_of_known_signs_and_words_for_every_cause() -> None:
    assert set(LIKELY) == set(Cause) == set(WORDS)
    for row in (ORDINARY, *LIKELY.values()):
        assert set(row) <= set(ORDINARY)
        assert all(0 < value < 1 for value in row.values())
    assert len(LENGTHS) >= 5
