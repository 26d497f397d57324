"""A target's own past is its last regime that lasted: slow-downs are found in minutes, and a new level is news for a day."""

import math
import random
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.measurement.window import Sample
from app.targets.model import FitFor, Thresholds
from app.verdict.advance import advance
from app.verdict.baseline import change_point, change_points, own_level
from app.verdict.judge import judge
from app.verdict.model import Incident, IncidentState, Severity, State, Trail
from app.verdict.outbox import Past
from tests.support.verdicts import NOW, a_sample, a_target, an_expectation, speeds, verdict_of

WEEK = 400
STEP = timedelta(days=7) / WEEK
"""A week in 400 samples, as the store thins it."""

Course = Callable[[float], float]
"""Speed by day."""


def a_history(course: Course, *, seed: int = 1, noise: float = 0.1) -> list[tuple[datetime, float]]:
    chance = random.Random(seed)
    return [(NOW + STEP * i, course(i * 7 / WEEK) * chance.lognormvariate(0, noise)) for i in range(WEEK)]


def swing(day: float) -> float:
    return 100 + 30 * math.sin(2 * math.pi * day)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("course", "level", "before"),
    [
        (lambda _: 100, 100, None),
        (lambda day: 100 if day < 5 else 60, 60, 100),
        (lambda day: 100 if day < 3 else 200, 200, 100),
        (lambda day: 100 if day < 6.5 else 60, 100, None),
        (lambda day: 50 if 5 < day < 5.4 else 100, 100, None),
        (lambda day: 200 if 2 < day < 4 else 100, 100, 130),
        (lambda day: 100 if day < 5.9 else 50 if day < 6.4 else 100, 100, None),
    ],
    ids=["steady", "fell", "rose", "fell half a day ago", "one bad night", "rose and fell back", "recovered"],
)
def test_the_level_is_that_of_the_last_regime_that_lasted(
    course: Course, level: float, before: float | None, seed: int
) -> None:
    found = own_level(a_history(course, seed=seed))
    assert found is not None
    assert found.value == pytest.approx(level, rel=0.05)
    assert found.low < found.value < found.high
    if before is not None:
        assert found.before == pytest.approx(before, rel=0.1)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("course", [swing, lambda day: 150 if day % 1 < 0.5 else 100], ids=["sine", "night tariff"])
def test_a_daily_cycle_is_one_regime_and_all_of_it_is_ordinary(course: Course, seed: int) -> None:
    found = own_level(a_history(course, seed=seed))
    assert found is not None
    assert found.before is None
    assert found.low < 1.12 * min(course(hour / 24) for hour in range(24))


def test_no_change_is_seen_in_noise() -> None:
    cuts = [change_point([random.Random(seed * 1000 + i).gauss(0, 0.3) for i in range(200)]) for seed in range(200)]
    assert sum(cut is not None for cut in cuts) <= 2


def test_cuts_are_found_where_they_are() -> None:
    values = [0.0] * 50 + [1.0] * 40 + [0.2] * 30
    assert list(change_points(values)) == [50, 90]
    assert change_point([0.0] * 60) is None
    assert change_point([0.0] * 8 + [1.0] * 7) is None
    assert change_point([0.0] * 30 + [0.05] * 30) is None


def test_nineteen_samples_are_no_past() -> None:
    history = a_history(lambda _: 100)
    assert own_level(history[::20][:19]) is None
    young = own_level(history[::20])
    assert young is not None
    assert young.samples == 20


def test_less_than_a_day_is_no_past() -> None:
    history = a_history(lambda _: 100)
    assert own_level(history[:58]) is None
    assert own_level(history[:59]) is not None


@given(st.lists(st.floats(0.1, 1e4), min_size=20, max_size=120), st.randoms())
def test_the_order_of_a_history_changes_nothing_and_the_level_lies_in_its_range(
    values: list[float], chance: random.Random
) -> None:
    history = [(NOW + timedelta(hours=2) * i, value) for i, value in enumerate(values)]
    shuffled = list(history)
    chance.shuffle(shuffled)
    found = own_level(history)
    assert own_level(shuffled) == found
    assert found is not None
    assert min(values) <= found.value <= max(values)
    assert found.samples <= len(values)


class Watch:
    """A target that nobody knows, probed every 5 minutes and judged as the service does it, with a week behind it."""

    def __init__(self, course: Course, *, noise: float = 0.08) -> None:
        self.course, self.noise, self.chance = course, noise, random.Random(7)
        self.target, self.thresholds = a_target(every_s=300.0), Thresholds()
        self.window = timedelta(seconds=self.thresholds.window_for(300.0))
        self.runs: list[Sample] = []
        self.trail = Trail()
        self.incidents: dict[str, Incident] = {}
        self.log: list[tuple[float, str, str | None]] = []

    def watch(self, *, days: float) -> "Watch":
        for tick in range(int(days * 288)):
            now = NOW + tick * timedelta(minutes=5)
            speed = self.course(tick / 288) * self.chance.lognormvariate(0, self.noise)
            self.runs.append(a_sample(speed, ago_s=-(now - NOW).total_seconds()))
            self._judge(now)
        return self

    def _judge(self, now: datetime) -> None:
        reach = 3 * int(self.window / timedelta(minutes=5))
        past = Past(
            samples=tuple(self.runs[-reach:]), baseline=tuple(self.runs[:-reach][::-5][:WEEK][::-1]), previous=None,
            trail=self.trail, locations={},
            open_incidents=tuple(i for i in self.incidents.values() if i.state is IncidentState.OPEN),
        )  # fmt: skip
        verdict = judge(target=self.target, location="default", past=past, expectation=None, thresholds=self.thresholds,
                        fit_for=FitFor(), now=now)  # fmt: skip
        done = advance(target=self.target, verdict=verdict, past=past, thresholds=self.thresholds, now=now,
                       new_id=lambda: f"i{len(self.incidents)}")  # fmt: skip
        self.trail = done.trail
        self.incidents |= {incident.id: incident for incident in done.incidents}
        day = (now - NOW) / timedelta(days=1)
        self.log += [(day, str(change.kind), change.incident.resolve_reason) for change in done.changes]


def test_a_slow_down_is_found_within_its_windows_and_is_news_for_about_a_day() -> None:
    seen = Watch(lambda day: 100 if day < 3 else 60).watch(days=5)
    (opened, opens, _), (closed, closes, why) = seen.log
    assert (opens, closes, why) == ("opened", "resolved", "settled_at_new_level")
    windows = seen.thresholds.open_on * seen.window
    assert timedelta(0) < timedelta(days=opened - 3) <= windows
    assert 1.0 <= closed - 3 <= 1.6
    (incident,) = seen.incidents.values()
    assert incident.summary.endswith("(regressed), settled at new level.")


def test_a_night_of_slowness_opens_and_recovers() -> None:
    seen = Watch(lambda day: 50 if 3 < day < 3.3 else 100).watch(days=4)
    assert [(kind, why) for _, kind, why in seen.log] == [("opened", None), ("resolved", "recovered")]


def test_a_rise_that_lasted_a_day_is_the_new_past_and_one_of_an_hour_is_not() -> None:
    lasted = Watch(lambda day: 200 if 2 < day < 4 else 100).watch(days=4.2)
    assert [kind for _, kind, _ in lasted.log] == ["opened"]
    brief = Watch(lambda day: 200 if 3 < day < 3.1 else 100).watch(days=4)
    assert brief.log == []


def test_nothing_is_said_of_a_target_that_swings_or_drifts() -> None:
    swings = Watch(swing).watch(days=5)
    assert [entry for entry in swings.log if entry[0] > 2] == [], "once it has been seen for two days"
    assert Watch(lambda day: 100 - 6 * day).watch(days=5).log == []


def past_of(*values: float, ttft_s: float = 0.2) -> dict[str, object]:
    return {
        "baseline": tuple(a_sample(v, ttft_s=ttft_s, ago_s=90_000 + 1500.0 * (len(values) - i)) for i, v in enumerate(values))
    }


def test_far_below_its_own_past_is_critical_where_physics_has_no_say() -> None:
    past = past_of(*[100.0] * 60)
    nobody_knows = verdict_of(speeds(*[39.0] * 6), past=past)
    assert (nobody_knows.state, nobody_knows.severity) == (State.REGRESSED, Severity.CRITICAL)
    assert verdict_of(speeds(*[41.0] * 6), past=past).severity is Severity.WARNING
    physics_is_content = verdict_of(speeds(*[39.0] * 6), past=past, expectation=an_expectation(50.0))
    assert (physics_is_content.state, physics_is_content.severity) == (State.REGRESSED, Severity.WARNING)


def test_a_target_that_wanders_must_leave_its_ordinary_range() -> None:
    wanders = past_of(*[150.0, 150.0, 150.0, 150.0, 150.0, 65.0, 65.0, 65.0, 65.0, 65.0] * 10)
    assert verdict_of(speeds(*[66.0] * 6), past=wanders).state is State.OK
    assert verdict_of(speeds(*[60.0] * 6), past=wanders).state is State.REGRESSED


def test_a_first_token_far_later_than_ever_is_slow_even_where_nobody_knows_the_deployment() -> None:
    past = past_of(*[100.0] * 60, ttft_s=0.3)
    late = verdict_of(speeds(*[100.0] * 6, ttft_s=1.4), past=past)
    assert (late.state, late.severity, late.reasons[0]) == (
        State.SLOW_FIRST_TOKEN, Severity.WARNING, "first_token_later_than_own_past",
    )  # fmt: skip
    assert "far later than in its own past" in late.explanation
    assert verdict_of(speeds(*[100.0] * 6, ttft_s=1.2), past=past).state is State.OK
    assert verdict_of(speeds(*[100.0] * 6, ttft_s=1.4)).state is State.OK
    slow_ever_since = past_of(*[100.0] * 60, ttft_s=0.6)
    assert verdict_of(speeds(*[100.0] * 6, ttft_s=1.7), past=slow_ever_since).state is State.OK


def test_a_verdict_says_when_its_own_level_moved() -> None:
    fell = verdict_of(speeds(*[60.0] * 6), past=past_of(*[100.0] * 60, *[60.0] * 90))
    assert (fell.state, fell.baseline, fell.baseline_before) == (State.OK, 60.0, 100.0)
    assert "own_level_fell" in fell.reasons
    assert "Its own level fell from 100 to 60 tokens/s on 2026-11-28." in fell.explanation
    rose = verdict_of(speeds(*[100.0] * 6), past=past_of(*[60.0] * 60, *[100.0] * 90))
    assert "own_level_rose" in rose.reasons
    assert "rose from 60 to 100" in rose.explanation
