"""All targets as an overview shows them: configuration, what is said of them, their last run and their last day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.storage.queries.incidents import current_verdicts
from app.storage.queries.runs import RunRow, last_runs
from app.storage.queries.session import ReadSession
from app.storage.queries.summaries import Summary, summaries
from app.targets.model import Target
from app.verdict.freshness import as_of
from app.verdict.model import Severity, State, Verdict

DAY = timedelta(days=1)
_WORST = (Severity.CRITICAL, Severity.WARNING, Severity.NONE)
_STATES = (
    State.UNAVAILABLE,
    State.BELOW_EXPECTATION,
    State.SLOW_FIRST_TOKEN,
    State.REGRESSED,
    State.ABOVE_CEILING,
    State.UNKNOWN,
    State.OK,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One target now. `verdicts` has one a location, in the target's order; None and () where nothing is known yet."""

    target: Target
    verdicts: tuple[Verdict, ...] = ()
    last_run: RunRow | None = None
    summary: Summary | None = None

    @property
    def worst(self) -> Verdict | None:
        """The gravest of its verdicts."""
        return min(self.verdicts, key=lambda v: (_WORST.index(v.severity), _STATES.index(v.state)), default=None)

    @property
    def state(self) -> State:
        """The state of the gravest verdict; unknown without one."""
        worst = self.worst
        return State.UNKNOWN if worst is None else worst.state


async def verdicts_of(session: ReadSession, targets: Sequence[Target], *, now: datetime) -> dict[str, tuple[Verdict, ...]]:
    """Target -> what is said of it now, one a location that it still has; stale ones read as unknown."""
    wanted = {target.name: target for target in targets}
    only = targets[0].name if len(targets) == 1 else None
    said: dict[str, list[Verdict]] = {}
    for verdict in await current_verdicts(session, target=only):
        target = wanted.get(verdict.target)
        if target is not None and verdict.location in target.locations:
            said.setdefault(verdict.target, []).append(as_of(verdict, every_s=target.every_s, now=now))
    return {name: tuple(verdicts) for name, verdicts in said.items()}


async def standings(session: ReadSession, targets: Sequence[Target], *, now: datetime) -> tuple[Standing, ...]:
    """How each target stands now, in the order given."""
    only = targets[0].name if len(targets) == 1 else None
    verdicts = await verdicts_of(session, targets, now=now)
    runs = await last_runs(session, tuple(target.name for target in targets), since=now - 31 * DAY)
    days = await summaries(session, since=now - DAY, until=now + DAY, target=only)
    return tuple(
        Standing(
            target=target,
            verdicts=verdicts.get(target.name, ()),
            last_run=runs.get(target.name),
            summary=days.get(target.name),
        )
        for target in targets
    )
