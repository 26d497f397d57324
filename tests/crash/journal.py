"""Who took which tick, and who died when: what tells a second call after a crash from one for nothing.

Replicas write a line for each claim into `FOLDER/claims/PID`, and another when they die of their sentence. The fleet notes what it does to
them. All instants are of `CLOCK_MONOTONIC`, which is one for all processes of a machine.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

DEATH = "death"


def note(folder: Path, what: str) -> None:
    """A line of this process."""
    with (folder / str(os.getpid())).open("a") as page:
        page.write(f"{time.monotonic_ns()} {what}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """One tick, taken by one process."""

    tick: str
    pid: int
    at_ns: int


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

    def _lines(self) -> Iterator[tuple[int, int, str]]:
        for page in self.folder.iterdir():
            for row in page.read_text().splitlines():
                at, _, what = row.partition(" ")
                yield int(page.name), int(at), what

    def repeats(self) -> tuple[list[tuple[Claimed, Claimed]], list[tuple[Claimed, Claimed]]]:
        """(first, second) claims of ticks that were taken more than once: after a crash of the first, and for nothing."""
        crashes = {pid: list(times) for pid, times in self.began.items()}
        taken: dict[str, list[Claimed]] = defaultdict(list)
        for pid, at, what in self._lines():
            if what == DEATH:
                crashes.setdefault(pid, []).append(at)
            else:
                taken[what].append(Claimed(tick=what, pid=pid, at_ns=at))
        excused, others = [], []
        for claims in taken.values():
            claims.sort(key=lambda claim: claim.at_ns)
            for first, second in pairwise(claims):
                hits = crashes.get(first.pid, []) + self.everybody
                (excused if any(first.at_ns <= hit <= second.at_ns for hit in hits) else others).append((first, second))
        return excused, others
