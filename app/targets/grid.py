"""The schedule grid: arithmetic, not state.

Tick k of a (target, location) is due at ``phase + k * interval`` since 1970 in UTC, with ``phase = hash(target, location)
mod interval``. So the grid is the same on every machine and after every restart, it cannot drift, targets spread over
their interval, and what was skipped is counted by subtraction, not by events. Whole microseconds inside: no rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATE_AFTER_S = 1.5
"""A run that starts later than this is counted as `late`: the scheduler looks once a second."""
MIN_GRACE_S = 2.0
FIRST_RUN_WITHIN_S = 30.0
_US = timedelta(microseconds=1)


def grace_s(every_s: float) -> float:
    """How late a tick may still run, in seconds: half its interval, but at least 2 s. Later, it is counted as missed."""
    return max(every_s / 2, MIN_GRACE_S)


def _spread(target: str, location: str, within_us: int) -> int:
    """A stable number in [0, within_us): the same for these names on every machine and Python."""
    digest = blake2b(f"{target}\0{location}".encode(), digest_size=8, person=b"grid").digest()
    return int.from_bytes(digest, "big") % within_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a look at the clock asks for: at most one tick to run, and how many were skipped.

    `due_at` None: nothing to run. `lateness_s` is 0 or more. `late` says that the run counts as late, `missed` how many
    ticks in the looked-at span will never run. `seen` is where the next look begins.
    """

    due_at: datetime | None
    lateness_s: float
    late: bool
    missed: int
    seen: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The ticks of one (target, location); make it with `Grid.of`."""

    phase_us: int
    interval_us: int

    @classmethod
    def of(cls, target: str, location: str, *, every_s: float) -> Grid:
        """The grid of these names.

        Raises:
            ValueError: `every_s` is under a microsecond.
        """
        interval_us = round(every_s * 1e6)
        if interval_us < 1:
            raise ValueError(f"an interval of {every_s} s is no interval")
        return cls(phase_us=_spread(target, location, interval_us), interval_us=interval_us)

    def tick(self, number: int) -> datetime:
        """When tick `number` is due."""
        return EPOCH + timedelta(microseconds=self.phase_us + number * self.interval_us)

    def number(self, at: datetime) -> int:
        """The last tick that is due at or before `at`."""
        return ((at - EPOCH) // _US - self.phase_us) // self.interval_us

    def last_due(self, at: datetime) -> datetime:
        """The last tick at or before `at`."""
        return self.tick(self.number(at))

    def next_due(self, after: datetime) -> datetime:
        """The first tick after `after`."""
        return self.tick(self.number(after) + 1)

    def count(self, after: datetime, until: datetime) -> int:
        """How many ticks are due in (after, until]; 0 when `until` is not later."""
        return max(0, self.number(until) - self.number(after))

    def due(self, after: datetime, until: datetime) -> tuple[datetime, ...]:
        """The ticks due in (after, until], oldest first. For a long span, `count` is free and this is not."""
        first = self.number(after) + 1
        return tuple(self.tick(number) for number in range(first, first + self.count(after, until)))

    def plan(self, *, seen: datetime, now: datetime) -> Plan:
        """What to do at `now` when everything up to `seen` has been dealt with.

        Only the newest tick of the span may run, and only within its grace: whatever happened (a pause, a suspended
        machine, a clock set forward by a month), the catch-up is one run. A clock set back begins anew at `now`, so the
        next tick is at most one interval away.
        """
        due = self.count(seen, now)
        if not due:
            return Plan(due_at=None, lateness_s=0.0, late=False, missed=0, seen=now)
        newest = self.last_due(now)
        lateness = (now - newest).total_seconds()
        runs = not is_missed(lateness, every_s=self.interval_us / 1e6)
        return Plan(
            due_at=newest if runs else None,
            lateness_s=lateness,
            late=runs and is_late(lateness),
            missed=due - runs,
            seen=now,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """How far the grids have been walked, over all of them.

    `at`: up to when ticks were handed out. `keys`: which grids were known then. `high`: the furthest that was ever walked;
    later than `at` while the wall clock goes over time that it has been through already. `turn`: how often it went back.
    """

    at: datetime
    keys: frozenset[str] = frozenset()
    high: datetime | None = None
    turn: int = 0


def is_late(lateness_s: float) -> bool:
    """Does a start `lateness_s` after its tick count as late?"""
    return lateness_s > LATE_AFTER_S


def is_missed(lateness_s: float, *, every_s: float) -> bool:
    """Is a tick that has not started by now past its grace?"""
    return lateness_s > grace_s(every_s)


def first_run(target: str, location: str, *, every_s: float, since: datetime) -> datetime:
    """When a target that never ran is first probed: within min(interval, 30 s) of `since`, spread like the grid."""
    within_us = round(min(every_s, FIRST_RUN_WITHIN_S) * 1e6)
    return since + timedelta(microseconds=_spread(target, location, max(1, within_us)))
