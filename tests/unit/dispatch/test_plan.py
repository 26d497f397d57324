"""The plan hands out each tick once, and never more than one of the past."""

from datetime import UTC, datetime, timedelta

from app.dispatch.plan import key_of, plan
from app.dispatch.tick import Tick, decode, encode
from app.targets.grid import Walk
from app.targets.model import Provider, Recipe, Target

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def target(name: str, every_s: float = 60.0, *, paused: bool = False) -> Target:
    return Target(
        name=name,
        provider=Provider(name="p", base_url="http://127.0.0.1"),
        model="m",
        every_s=every_s,
        recipe=Recipe(name="chat-short"),
        paused=paused,
    )


def keys(*targets: Target) -> frozenset[str]:
    return frozenset(key_of(t, location) for t in targets for location in t.locations)


def test_walking_a_day_second_by_second_hands_out_every_tick_of_the_grid_once() -> None:
    t = target("a")
    seen: list[datetime] = []
    for second in range(86_400):
        at = NOW + timedelta(seconds=second)
        made = plan([t], walk=Walk(at=at, keys=keys(t)), now=at + timedelta(seconds=1))
        seen += [tick.due_at for tick, _ in made.due]
        assert made.missed == 0
    assert len(seen) == len(set(seen)) == 1440


def test_after_a_pause_of_an_hour_one_tick_at_most_runs_and_the_rest_are_counted() -> None:
    t = target("a")
    made = plan([t], walk=Walk(at=NOW, keys=keys(t)), now=NOW + timedelta(hours=1))
    assert len(made.due) + made.missed == 60
    assert len(made.due) <= 1


def test_a_new_target_owes_nothing_of_the_past_and_runs_within_thirty_seconds() -> None:
    t = target("a", every_s=3600.0)
    made = plan([t], walk=Walk(at=NOW - timedelta(days=3)), now=NOW)
    assert made.missed == 0
    assert all(NOW <= tick.due_at <= NOW + timedelta(seconds=30) for tick, _ in made.due)
    assert made.walk.keys == keys(t)


def test_many_new_targets_do_not_start_at_once() -> None:
    targets = [target(f"t{n}", every_s=3600.0) for n in range(200)]
    due = sorted(tick.due_at for tick, _ in plan(targets, walk=Walk(at=NOW), now=NOW).due)
    busiest = max(sum(1 for d in due if at <= d < at + timedelta(seconds=1)) for at in due)
    assert busiest <= 2 * 200 / 30 + 5


def test_a_paused_target_is_left_out_and_owes_nothing_when_it_resumes() -> None:
    made = plan([target("a", paused=True)], walk=Walk(at=NOW, keys=keys(target("a"))), now=NOW + timedelta(hours=1))
    assert (made.due, made.missed, made.walk.keys) == ((), 0, frozenset())


def test_a_clock_set_back_begins_another_turn_whose_ticks_are_a_millisecond_later() -> None:
    t = target("a")
    first = plan([t], walk=Walk(at=NOW, keys=keys(t)), now=NOW + timedelta(seconds=60))
    back = plan([t], walk=first.walk, now=NOW)
    assert (back.due, back.missed) == ((), 0)
    assert back.walk == Walk(at=NOW, keys=keys(t), high=NOW + timedelta(seconds=60), turn=1)
    again = plan([t], walk=back.walk, now=NOW + timedelta(seconds=60))
    assert [tick.due_at for tick, _ in again.due] == [tick.due_at + timedelta(milliseconds=1) for tick, _ in first.due]
    assert again.walk.high is None
    beyond = plan([t], walk=again.walk, now=NOW + timedelta(seconds=120))
    assert [tick.due_at for tick, _ in beyond.due] == [tick.due_at + timedelta(seconds=60) for tick, _ in first.due]


def test_a_tick_survives_the_queue() -> None:
    tick = Tick(target="a/b", location="default", due_at=NOW, asked=True)
    assert decode(encode(tick)) == tick
