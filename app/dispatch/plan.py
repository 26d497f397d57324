"""What a look at the clock asks for, over all targets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.dispatch.tick import Tick
from app.targets.grid import FIRST_RUN_WITHIN_S, Grid, Walk, first_run
from app.targets.model import Target

STEP_BACK = timedelta(seconds=10)
"""A clock that is this much behind the walk was set back. Less is a machine whose clock is a little behind the last elected
one's, or a correction: the walk waits until the clock has caught up.
"""
TURN = timedelta(milliseconds=1)
"""How much later a tick is due for each time that the clock went back over it."""


def key_of(target: Target, location: str) -> str:
    """What the grid is kept by: a change of the interval makes a new grid, whose past is nobody's debt."""
    return f"{target.name}|{location}|{target.every_s:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Ticks to queue with their provider (some may be due a little later), how many can never run, and the walk so far."""

    due: tuple[tuple[Tick, str], ...]
    missed: int
    walk: Walk


def is_set_back(walk: Walk, *, now: datetime) -> bool:
    """Was the clock set back behind what has been walked?"""
    return walk.at - now >= STEP_BACK


def plan(targets: Sequence[Target], *, walk: Walk, now: datetime) -> Plan:
    """What came due since the walk, up to `now`.

    A target that was not known owes nothing of the past; when its first tick is far away, it gets one soon, spread so
    that many new targets do not start at once. Paused targets are left out, and count as not known when they resume.

    A tick is known by its instant. When the clock was set back, the same instants come again: another turn begins, in which
    ticks are due a millisecond later, so that each is a tick of its own and nobody takes it for the one that has run.
    """
    if is_set_back(walk, now=now):
        walk = Walk(at=now, keys=walk.keys, high=max(walk.at, walk.high or walk.at), turn=walk.turn + 1)
    until = max(now, walk.at)
    due: list[tuple[Tick, str]] = []
    missed = 0
    keys: set[str] = set()
    for target in targets:
        if target.paused:
            continue
        for location in target.locations:
            key = key_of(target, location)
            keys.add(key)
            grid = Grid.of(target.name, location, every_s=target.every_s)
            if key not in walk.keys:
                at = first_run(target.name, location, every_s=target.every_s, since=until)
                step = None if target.every_s <= FIRST_RUN_WITHIN_S or grid.next_due(until) <= at else at
            else:
                step = (made := grid.plan(seen=walk.at, now=until)).due_at
                missed += made.missed
            if step is not None:
                due.append((Tick(target=target.name, location=location, due_at=_in_turn(step, walk)), target.provider.name))
    high = None if walk.high is None or until >= walk.high else walk.high
    return Plan(due=tuple(due), missed=missed, walk=replace(walk, at=until, keys=frozenset(keys), high=high))


def _in_turn(due_at: datetime, walk: Walk) -> datetime:
    """When a tick is due in this turn."""
    return due_at + walk.turn * TURN if walk.high is not None and due_at <= walk.high else due_at
