"""The grid neither drifts nor bunches, forgets nothing over restarts, and never catches up more than one run."""

import subprocess
import sys
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from app.targets.grid import FIRST_RUN_WITHIN_S, Grid, first_run, grace_s, is_late, is_missed

names = st.text(min_size=1, max_size=30)
intervals = st.integers(1, 7 * 86400).map(float) | st.floats(1.0, 3600.0)
instants = st.integers(946_684_800, 4_102_444_800).map(lambda second: datetime.fromtimestamp(second, UTC))
DAY = timedelta(days=1)


@given(names, names, instants)
def test_a_day_of_minutes_has_exactly_1440_ticks(target: str, location: str, start: datetime) -> None:
    ticks = Grid.of(target, location, every_s=60.0).due(start, start + DAY)
    assert len(ticks) == 1440
    assert {later - earlier for earlier, later in pairwise(ticks)} == {timedelta(seconds=60)}


@given(names, intervals, st.integers(-(10**5), 10**5))
def test_ticks_do_not_drift_however_far_they_are(target: str, every_s: float, number: int) -> None:
    grid = Grid.of(target, "default", every_s=every_s)
    assert grid.number(grid.tick(number)) == number
    assert grid.tick(number + 1) - grid.tick(number) == timedelta(microseconds=round(every_s * 1e6))
    assert 0 <= grid.phase_us < grid.interval_us


@given(names, intervals, st.lists(instants, min_size=2, max_size=8))
def test_looking_more_or_less_often_sees_the_same_ticks(target: str, every_s: float, looks: list[datetime]) -> None:
    looks.sort()
    grid = Grid.of(target, "default", every_s=every_s)
    pieces = [grid.count(a, b) for a, b in pairwise(looks)]
    assert sum(pieces) == grid.count(looks[0], looks[-1])


@given(names, intervals, instants)
def test_next_and_last_due_enclose_the_instant(target: str, every_s: float, at: datetime) -> None:
    grid = Grid.of(target, "default", every_s=every_s)
    assert grid.last_due(at) <= at < grid.next_due(at)
    assert grid.next_due(at) - grid.last_due(at) == timedelta(microseconds=grid.interval_us)
    assert grid.due(at, grid.next_due(at)) == (grid.next_due(at),)


@given(names, intervals, instants, st.floats(0, 1e7))
def test_every_tick_is_run_or_missed_and_the_catch_up_is_one_run(
    target: str, every_s: float, seen: datetime, gap_s: float
) -> None:
    grid = Grid.of(target, "default", every_s=every_s)
    now = seen + timedelta(seconds=gap_s)
    plan = grid.plan(seen=seen, now=now)
    assert plan.missed + (plan.due_at is not None) == grid.count(seen, now)
    assert plan.lateness_s >= 0
    assert plan.seen == now
    if plan.due_at is not None:
        assert plan.due_at == grid.last_due(now)
        assert plan.lateness_s <= grace_s(every_s)
        assert plan.late == is_late(plan.lateness_s)


@given(
    names,
    st.integers(1, 3600).map(float),
    instants,
    st.sampled_from([-30 * DAY, -timedelta(hours=2), timedelta(hours=2), 30 * DAY]),
)
@example("t", 1.0, datetime(2026, 1, 1, tzinfo=UTC), 30 * DAY)
def test_a_stepped_clock_costs_at_most_one_extra_run_and_stops_nothing(
    target: str, every_s: float, at: datetime, step: timedelta
) -> None:
    grid = Grid.of(target, "default", every_s=every_s)
    stepped = grid.plan(seen=at, now=at + step)
    runs = int(stepped.due_at is not None)
    assert runs <= 1
    following = grid.plan(seen=stepped.seen, now=stepped.seen + timedelta(seconds=every_s))
    assert following.due_at is not None or following.lateness_s > grace_s(every_s)
    assert grid.next_due(stepped.seen) - stepped.seen <= timedelta(seconds=every_s)


@given(names, names, intervals)
def test_the_phase_depends_on_both_names_and_on_nothing_else(target: str, location: str, every_s: float) -> None:
    assert Grid.of(target, location, every_s=every_s) == Grid.of(target, location, every_s=every_s)
    assume(target != location)
    long_s = 1e9
    assert Grid.of(target, location, every_s=long_s).phase_us != Grid.of(location, target, every_s=long_s).phase_us


def test_another_process_with_another_hash_seed_has_the_same_grid() -> None:
    code = "from app.targets.grid import Grid; print(Grid.of('groq/gpt', 'fra', every_s=60).phase_us)"
    answers = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert answers == {f"{Grid.of('groq/gpt', 'fra', every_s=60).phase_us}\n"}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"])
def test_summer_time_changes_no_number_of_ticks(zone: str) -> None:
    """Instants may come in any zone; the grid counts UTC microseconds."""
    grid = Grid.of("t", "default", every_s=60.0)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for day in range(366):
        begin = (start + day * DAY).astimezone(ZoneInfo(zone))
        end = (start + (day + 1) * DAY).astimezone(ZoneInfo(zone))
        assert grid.count(begin, end) == 1440


@pytest.mark.parametrize("prefix", ["target", "groq/llama", "a", "node-0"])
@pytest.mark.parametrize("every_s", [10.0, 60.0, 300.0])
def test_a_herd_of_200_never_thunders(prefix: str, every_s: float) -> None:
    """At most 2 x 200 / interval + 5 start in any one second, from the first second on."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for first in (False, True):
        starts = []
        for index in range(200):
            name = f"{prefix}-{index}"
            due = Grid.of(name, "default", every_s=every_s).next_due(start)
            starts.append((first_run(name, "default", every_s=every_s, since=start) if first else due).timestamp())
        starts.sort()
        spread_s = min(every_s, FIRST_RUN_WITHIN_S) if first else every_s
        busiest = max(bisect_left(starts, at + 1) - index for index, at in enumerate(starts))
        assert busiest <= 2 * 200 / spread_s + 5
        assert starts[-1] - start.timestamp() <= spread_s


def test_grace_is_half_the_interval_but_not_under_two_seconds() -> None:
    assert grace_s(60.0) == 30.0
    assert grace_s(1.0) == 2.0
    assert not is_missed(30.0, every_s=60.0)
    assert is_missed(30.001, every_s=60.0)


def test_a_blocked_loop_loses_no_tick_from_the_books() -> None:
    """Interval 1 s, blocked for 3 s: run + late + missed equals the ticks that were due."""
    grid = Grid.of("t", "default", every_s=1.0)
    start = grid.tick(1_700_000_000)
    looks = [start + timedelta(seconds=s) for s in (1, 2, 5, 6, 7)]
    seen, ran, missed = start, 0, 0
    for now in looks:
        plan = grid.plan(seen=seen, now=now)
        seen, ran, missed = plan.seen, ran + (plan.due_at is not None), missed + plan.missed
    assert (ran, missed) == (5, 2)


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no interval"):
        Grid.of("t", "default", every_s=0.0)
