"""What a look at the clock asks for, over all targets. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.dispatch.tick import Tick
from app.targets.grid import FIRST_RUN_WITHIN_S, Grid, first_run
from app.targets.model import Target


def key_of(target: Target, location: str) -> str:
    """What the grid is kept by: a change of the interval makes a new grid, whose past is nobody's debt."""
    return f"{target.name}|{location}|{target.every_s:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Ticks to queue with their provider (some may be due a little later), how many can never run, and the keys walked."""

    due: tuple[tuple[Tick, str], ...]
    missed: int
    keys: frozenset[str]


def plan(targets: Sequence[Target], *, since: datetime, until: datetime, known: Collection[str]) -> Plan:
    """What is due of `targets` in (since, until].

    A target that was not `known` owes nothing of the past; when its first tick is far away, it gets one soon, spread so
    that many new targets do not start at once. Paused targets are left out, and count as not known when they resume.
    """
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
            if key not in known:
                at = first_run(target.name, location, every_s=target.every_s, since=until)
                step = None if target.every_s <= FIRST_RUN_WITHIN_S or grid.next_due(until) <= at else at
            else:
                step = (made := grid.plan(seen=since, now=until)).due_at
                missed += made.missed
            if step is not None:
                due.append((Tick(target=target.name, location=location, due_at=step), target.provider.name))
    return Plan(due=tuple(due), missed=missed, keys=frozenset(keys))
