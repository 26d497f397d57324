"""Who took which tick, and who died when: what tells a second call after a crash from one for nothing.

Replicas write a line for each claim and each call into `FOLDER/claims/PID`, and another when they die of their sentence. The fleet notes
what it does to them. All instants are of `CLOCK_MONOTONIC`, which is one for all processes of a machine.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

CLAIM, CALL, DEATH = "claim", "call", "death"


def note(folder: Path, what: str, tick: str = "") -> None:
    """A line of this process."""
    with (folder / str(os.getpid())).open("a") as page:
        page.write(f"{time.monotonic_ns()} {what} {tick}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One tick, claimed or called by one process, which had claimed it at `since_ns`."""

    tick: str
    pid: int
    at_ns: int
    since_ns: int


@dataclass(slots=True, kw_only=True)
class Repeats:
    """Steps of all ticks, and pairs (first, second) of those that were done more than once: after a crash, and for nothing."""

    steps: int = 0
    excused: list[tuple[Step, Step]] = field(default_factory=list)
    others: list[tuple[Step, Step]] = field(default_factory=list)


@dataclass(slots=True)
class Journal:
    """What happened to whom. Postgres has no process number here: what happens to it happens to all."""

    folder: Path
    began: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Process -> when something was done to it after which its work may be lost: killed, orphaned, frozen."""
    everybody: list[int] = field(default_factory=list)

    def hit(self, *pids: int) -> None:
        """These were killed, orphaned or frozen."""
        for pid in pids:
            self.began[pid].append(time.monotonic_ns())

    def hit_all(self) -> None:
        """Postgres went away."""
        self.everybody.append(time.monotonic_ns())

    @property
    def hits(self) -> int:
        """How often something was done to somebody after which work may be lost."""
        return sum(map(len, self._crashes().values())) + len(self.everybody)

    def repeats(self, kind: str) -> Repeats:
        """What was claimed, or called, more than once. A second time is excused when the first process was hit since, or the
        second one between its claim and its call: what thaws goes on where it was frozen.
        """
        crashes, steps = self._crashes(), self._steps(kind)
        found = Repeats(steps=sum(map(len, steps.values())))

        def hit(pid: int, since_ns: int, until_ns: int) -> bool:
            return any(since_ns <= at <= until_ns for at in crashes.get(pid, []) + self.everybody)

        for each in steps.values():
            for first, second in pairwise(sorted(each, key=lambda step: step.at_ns)):
                crashed = hit(first.pid, first.at_ns, second.at_ns) or hit(second.pid, second.since_ns, second.at_ns)
                (found.excused if crashed else found.others).append((first, second))
        return found

    def _lines(self) -> Iterator[tuple[int, int, str, str]]:
        for page in self.folder.iterdir():
            for row in page.read_text().splitlines():
                at, what, tick = row.split(" ", 2)
                yield int(page.name), int(at), what, tick

    def _crashes(self) -> dict[int, list[int]]:
        crashes = {pid: list(times) for pid, times in self.began.items()}
        for pid, at, what, _ in self._lines():
            if what == DEATH:
                crashes.setdefault(pid, []).append(at)
        return crashes

    def _steps(self, kind: str) -> dict[str, list[Step]]:
        found: dict[str, list[Step]] = defaultdict(list)
        claimed: dict[tuple[int, str], int] = {}
        for pid, at, what, tick in self._lines():
            if what == CLAIM:
                claimed[pid, tick] = at
            if what == kind:
                found[tick].append(Step(tick=tick, pid=pid, at_ns=at, since_ns=claimed.get((pid, tick), at)))
        return found
