"""Incidents open once on lasting evidence, close once on lasting health, and nothing else moves them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.measurement.model import Outcome
from app.measurement.window import Sample
from app.targets.model import FitFor, Thresholds
from app.verdict.advance import CONFIG_RULES, advance
from app.verdict.judge import judge
from app.verdict.model import Advance, ChangeKind, Incident, IncidentState, Severity, State, Trail, Verdict
from app.verdict.trail import STATE_RULES
from tests.support.verdicts import NOW, a_past, a_sample, a_target, an_expectation, failures, said

STEP = timedelta(seconds=300)
B, C, H, U = "below warning", "below critical", "ok", "unknown"
WORDS = {
    B: (State.BELOW_EXPECTATION, Severity.WARNING),
    C: (State.BELOW_EXPECTATION, Severity.CRITICAL),
    H: (State.OK, Severity.NONE),
    U: (State.UNKNOWN, Severity.NONE),
    "below unconfirmed": (State.BELOW_EXPECTATION, Severity.NONE),
    "down": (State.UNAVAILABLE, Severity.CRITICAL),
    "slow": (State.SLOW_FIRST_TOKEN, Severity.WARNING),
    "regressed": (State.REGRESSED, Severity.WARNING),
    "above": (State.ABOVE_CEILING, Severity.WARNING),
}


class Store:
    """Keeps what `advance` decided, as the database would."""

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        self.thresholds = thresholds or Thresholds()
        self.trail = Trail()
        self.incidents: dict[str, Incident] = {}
        self.log: list[tuple[str, str]] = []
        self.ids = (f"i{n}" for n in count())

    def see(self, verdict: Verdict, samples: Sequence[Sample] = (), *, now: datetime) -> Advance:
        still_open = tuple(i for i in self.incidents.values() if i.state is IncidentState.OPEN)
        done = advance(
            target=a_target(), verdict=verdict, past=a_past(samples, trail=self.trail, open_incidents=still_open),
            thresholds=self.thresholds, now=now, new_id=lambda: next(self.ids),
        )  # fmt: skip
        self.trail = done.trail
        self.incidents |= {incident.id: incident for incident in done.incidents}
        self.log += [(change.kind, change.incident.rule) for change in done.changes]
        return done

    def play(self, words: Sequence[str], *, start: datetime = NOW, step: timedelta = STEP) -> list[str]:
        """One window each; what was announced of `below_expectation`."""
        before = len(self.log)
        for index, word in enumerate(words):
            at = start + index * step
            self.see(said(*WORDS[word], at=at), now=at)
        return [str(kind) for kind, rule in self.log[before:] if rule == "below_expectation"]


def test_an_incident_opens_on_two_of_three_windows_and_closes_on_none_of_three() -> None:
    store = Store()
    assert store.play([C]) == []
    assert store.play([C], start=NOW + STEP) == ["opened"]
    assert store.play([H, H], start=NOW + 2 * STEP) == []
    assert store.play([H], start=NOW + 4 * STEP) == ["resolved"]
    (incident,) = store.incidents.values()
    assert (incident.severity, incident.state, incident.resolve_reason) == (
        Severity.CRITICAL,
        IncidentState.RESOLVED,
        "recovered",
    )
    assert (incident.opened_at, incident.resolved_at) == (NOW + STEP, NOW + 4 * STEP)


@pytest.mark.parametrize(
    ("windows", "announced"),
    [
        ([B, H, B], ["opened"]),
        ([B, H, H, B], []),
        ([B, H, H, H] * 5, []),
        ([B, B, H, H, B, H, H], ["opened"]),
        ([B, B, H, H, B, H, H, H], ["opened", "resolved"]),
        ([B, U, U, B], ["opened"]),
        ([B, B, U, U, U, U, H, H], ["opened"]),
        ([B, B, U, H, U, H, U, H], ["opened", "resolved"]),
        ([B, C], ["opened"]),
        ([B, B, C], ["opened"]),
        ([B, B, C, C], ["opened", "updated"]),
        ([C, C, B, B], ["opened"]),
        ([C, C, B, B, B], ["opened", "updated"]),
        (["below unconfirmed"] * 5, []),
        ([B, B, "below unconfirmed", H, "below unconfirmed", H], ["opened"]),
        ([B, B, "down", "down", "down", "down"], ["opened"]),
        ([B, B, "down", "down", H, H, H], ["opened", "resolved"]),
        ([B, B, "slow", "slow", "slow"], ["opened", "resolved"]),
        ([B, B, "regressed", H, "slow"], ["opened", "resolved"]),
    ],
)
def test_windows_speak_for_the_rules_that_they_can_see(windows: list[str], announced: list[str]) -> None:
    assert Store().play(windows) == announced


def test_a_rule_behind_a_worse_one_stays_as_it_is() -> None:
    store = Store()
    store.play(["slow", "slow", B, B, B, B])
    assert [(kind, rule) for kind, rule in store.log] == [("opened", "slow_first_token"), ("opened", "below_expectation")]


@pytest.mark.parametrize(("high", "severity"), [(None, "critical"), (39.0, "critical"), (40.0, "warning"), (55.0, "warning")])
def test_a_speed_is_critically_low_when_its_whole_interval_is(high: float | None, severity: str) -> None:
    store = Store()
    for step in range(2):
        at = NOW + step * STEP
        store.see(replace(said(*WORDS[C], at=at), observed=35.0, observed_high=high, expected=100.0), now=at)
    (incident,) = store.incidents.values()
    assert incident.severity == severity


def test_every_rule_opens_by_its_own_name() -> None:
    for word in ("down", "above", B, "slow", "regressed"):
        store = Store()
        store.play([word, word])
        (incident,) = store.incidents.values()
        assert incident.rule == WORDS[word][0]
        assert incident.summary.startswith("groq/gpt from default ")
    assert len(STATE_RULES) == 5


def test_runs_between_windows_do_not_count_as_windows() -> None:
    store = Store()
    assert store.play([C] * 5, step=timedelta(seconds=60)) == []
    assert store.play([C], start=NOW + timedelta(seconds=299)) == ["opened"]


def test_a_short_window_opens_within_a_minute_of_the_first_run() -> None:
    """Every 5 s with windows of 30 s, as in the demo: judged on real samples, from nothing."""
    target, thresholds = a_target(every_s=5.0), Thresholds(window_s=30.0)
    store, samples = Store(thresholds), list[Sample]()
    for second in range(5, 60, 5):
        now = NOW + timedelta(seconds=second)
        samples.append(a_sample(20.0, ago_s=-second + 1))
        verdict = judge(target=target, location="default", past=a_past(samples), expectation=an_expectation(),
                        thresholds=thresholds, fit_for=FitFor(), now=now)  # fmt: skip
        done = advance(target=target, verdict=verdict, past=a_past(samples, trail=store.trail), thresholds=thresholds,
                       now=now, new_id=lambda: "i")  # fmt: skip
        store.trail = done.trail
        if done.changes:
            break
    assert done.changes[0].kind is ChangeKind.OPENED
    assert second <= 40


def test_after_a_long_gap_old_windows_count_no_more() -> None:
    store = Store()
    store.play([B])
    assert store.play([B], start=NOW + timedelta(hours=1)) == []
    assert store.play([B, H, H, H], start=NOW + timedelta(hours=1) + STEP) == ["opened", "resolved"]


def test_a_clock_that_steps_back_does_not_stop_the_windows() -> None:
    store = Store()
    store.play([B])
    assert store.play([B], start=NOW - timedelta(hours=2)) == ["opened"]


def test_a_rule_that_flaps_takes_longer_to_close_each_time() -> None:
    store = Store()
    spell = [B, B, *[H] * 3]
    assert store.play(spell) == ["opened", "resolved"]
    at = NOW + 5 * STEP
    assert store.play(spell, start=at) == ["opened"]
    assert store.play([H] * 3, start=at + 5 * STEP) == ["resolved"]
    at += 8 * STEP
    assert store.play([B, B, *[H] * 8], start=at) == ["opened"]
    assert store.play([H], start=at + 10 * STEP) == ["resolved"]
    calm = at + timedelta(hours=12)
    assert store.play([B, B, H, H, H], start=calm) == ["opened", "resolved"]


def test_the_same_call_twice_changes_nothing_more() -> None:
    """As after a crash between the decision and its commit: what was not stored is decided again, what was is not."""
    store = Store()
    store.play([C])
    at = NOW + STEP
    trail, verdict = store.trail, said(*WORDS[C], at=at)
    first = store.see(verdict, now=at)
    store.trail = trail
    store.incidents.clear()
    again = store.see(verdict, now=at)
    assert [c.kind for c in again.changes] == [c.kind for c in first.changes] == [ChangeKind.OPENED]
    assert store.see(verdict, now=at).changes == ()


@pytest.mark.parametrize(
    ("rule", "sample"),
    [
        ("auth", failures(1, Outcome.AUTH)[0]),
        ("not_found", failures(1, Outcome.NOT_FOUND)[0]),
        ("bad_request", failures(1, Outcome.BAD_REQUEST)[0]),
        ("quota", failures(1, Outcome.RATE_LIMITED, error_class="quota")[0]),
        ("budget", failures(1, Outcome.EMPTY, notes=("budget_spent_on_reasoning",))[0]),
    ],
)
def test_what_is_ours_to_fix_opens_on_two_runs_and_closes_on_the_first_that_was_served(rule: str, sample: Sample) -> None:
    store, samples = Store(), list[Sample]()

    def run(one: Sample) -> list[str]:
        samples.append(replace(one, started_at=NOW + timedelta(seconds=len(samples))))
        return [f"{c.kind} {c.incident.rule} {c.incident.severity}" for c in store.see(said(U), samples, now=NOW).changes]

    assert run(sample) == []
    assert run(failures(1)[0]) == []
    assert run(failures(1, Outcome.SKIPPED_BUDGET)[0]) == []
    assert run(sample) == [f"opened {rule} warning"]
    assert run(sample) == []
    assert run(failures(1)[0]) == []
    assert run(a_sample()) == [f"resolved {rule} warning"]
    assert run(failures(1)[0]) == []
    assert store.trail == Trail()
    assert rule in CONFIG_RULES


def test_a_stream_that_broke_off_was_served_and_reopens_nothing() -> None:
    store = Store()
    auth, cut = failures(1, Outcome.AUTH)[0], failures(1, Outcome.TRUNCATED)[0]
    order = [auth, auth, cut, failures(1)[0], failures(1)[0]]
    for end in range(1, 6):
        samples = [replace(one, started_at=NOW + timedelta(seconds=i)) for i, one in enumerate(order[:end])]
        store.see(said(U), samples, now=NOW)
    assert store.log == [("opened", "auth"), ("resolved", "auth")]


class Naive:
    """The rules again, from the whole history each time, without anything remembered but what was announced."""

    def __init__(self, thresholds: Thresholds) -> None:
        self.at = thresholds
        self.history: list[tuple[State, Severity]] = []
        self.open: dict[State, Severity] = {}
        self.closings: dict[State, int] = {}

    def see(self, state: State, severity: Severity) -> Iterator[tuple[str, str]]:
        if state is State.UNKNOWN or (state is not State.OK and severity is Severity.NONE):
            return
        self.history = [*self.history, (state, severity)][-4 * self.at.windows :]
        for place, rule in enumerate(STATE_RULES):
            visible = [(s, v) for s, v in self.history if s is State.OK or STATE_RULES.index(s) >= place]
            marks = [v if s is rule else Severity.NONE for s, v in visible]
            last = marks[-self.at.windows :]
            bad = [mark for mark in last if mark is not Severity.NONE]
            if rule not in self.open:
                if state is rule and len(bad) >= self.at.open_on:
                    self.open[rule] = Severity.CRITICAL if bad.count(Severity.CRITICAL) >= self.at.open_on else Severity.WARNING
                    yield "opened", rule
                continue
            need = self.at.windows * min(4, 1 + self.closings.get(rule, 0))
            if len(marks) >= need and sum(m is not Severity.NONE for m in marks[-need:]) <= self.at.close_on:
                del self.open[rule]
                self.closings[rule] = self.closings.get(rule, 0) + 1
                yield "resolved", rule
                continue
            critical = last.count(Severity.CRITICAL)
            wanted = self.open[rule]
            if critical >= self.at.open_on:
                wanted = Severity.CRITICAL
            elif not critical and len(last) == self.at.windows and bad:
                wanted = Severity.WARNING
            if wanted is not self.open[rule]:
                self.open[rule] = wanted
                yield "updated", rule


limits = st.integers(1, 5).flatmap(
    lambda windows: st.integers(1, windows).flatmap(
        lambda open_on: st.integers(0, open_on - 1).map(
            lambda close_on: Thresholds(windows=windows, open_on=open_on, close_on=close_on, flap_s=1e9)
        )
    )
)
stories = st.lists(st.sampled_from(list(WORDS)), max_size=60)


@given(stories, limits)
def test_random_histories_agree_with_a_naive_reference(words: list[str], thresholds: Thresholds) -> None:
    store, naive = Store(thresholds), Naive(thresholds)
    expected: list[tuple[str, str]] = []
    for index, word in enumerate(words):
        at = NOW + index * STEP
        expected += naive.see(*WORDS[word])
        # Unknown windows leave gaps; the reference knows none, so the trail is told that there was none.
        store.trail = replace(store.trail, taken_at=at - STEP if store.trail.taken_at else None)
        store.see(said(*WORDS[word], at=at), now=at)
    assert store.log == expected


@given(stories, limits, st.lists(st.floats(0, 5000), min_size=60, max_size=60))
def test_whatever_happens_no_rule_opens_twice_without_a_close(
    words: list[str], thresholds: Thresholds, gaps: list[float]
) -> None:
    store, at = Store(thresholds), NOW
    for word, gap in zip(words, gaps, strict=False):
        at += timedelta(seconds=gap)
        done = store.see(said(*WORDS[word], at=at), now=at)
        if word == U:
            assert done.changes == ()
    for rule in STATE_RULES:
        steps = [kind for kind, of in store.log if of == rule and kind != "updated"]
        assert all(kind == ("opened", "resolved")[index % 2] for index, kind in enumerate(steps))
        still = [i for i in store.incidents.values() if i.rule == rule and i.state is IncidentState.OPEN]
        assert len(still) == len(steps) % 2
