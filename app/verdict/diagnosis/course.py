"""A whole diagnosis without IO: a generator that yields rounds of calls, takes their trials, and returns the report."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from app.expectation.model import Expectation
from app.measurement.model import Outcome
from app.verdict.diagnosis import readings
from app.verdict.diagnosis.design import CACHE_PAIRS, cost_of, prefix_for, rounds_of
from app.verdict.diagnosis.model import NOTHING_KNOWN, Before, Diagnosis, Experiment, Round, Trial
from app.verdict.diagnosis.report import report
from app.verdict.diagnosis.signs import Seen

BUDGET_TOKENS = 100_000
"""What a whole diagnosis may use unless told otherwise."""
GIVE_UP = 3
"""Calls in a row that go wrong before an experiment is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be found out. `seed` decides orders and prompts; `only_here` what other locations say."""

    target: str
    seed: int = 0
    budget_tokens: int = BUDGET_TOKENS
    most_streams: int = 4
    """`max_concurrency` of the provider."""
    experiments: tuple[Experiment, ...] = tuple(Experiment)
    expectation: Expectation | None = None
    before: Before = NOTHING_KNOWN
    only_here: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The next round to run: `done` of `of` rounds of its experiment are behind."""

    experiment: Experiment
    round: Round
    done: int
    of: int


Steps = Generator[Step, Sequence[Trial], Diagnosis]


@dataclass(slots=True)
class _Log:
    trials: list[Trial] = field(default_factory=list)
    refused: dict[Experiment, str] = field(default_factory=dict)

    @property
    def used(self) -> int:
        return sum(trial.tokens_used for trial in self.trials)


def diagnosis(question: Question) -> Steps:
    """The rounds of a diagnosis, one after another; send the trials of each, and get the report in the end.

    An experiment that the budget cannot carry as a whole is not begun; one whose calls keep failing, or which the
    provider's budget stops, is given up. The report names both.
    """
    log = _Log()
    for experiment in Experiment:
        if experiment not in question.experiments:
            log.refused[experiment] = "not_asked"
            continue
        yield from _run(experiment, question, log)
    seen = Seen(
        trials=tuple(log.trials),
        before=question.before,
        expectation=question.expectation,
        drafts=readings.drafts(log.trials),
        prefill=readings.prefill(log.trials),
        hits=readings.hits(log.trials),
        sharing=readings.sharing(log.trials),
        course=readings.course(log.trials),
        only_here=question.only_here,
    )
    return report(question.target, seen, log.refused)


def _run(experiment: Experiment, question: Question, log: _Log) -> Generator[Step, Sequence[Trial], None]:
    left = question.budget_tokens - log.used
    rounds = rounds_of(
        experiment, seed=question.seed, prefix_tokens=_prefix_tokens(log, left), most_streams=question.most_streams
    )
    if not rounds:
        log.refused[experiment] = "max_concurrency"
        return
    if cost_of(rounds) > left:
        log.refused[experiment] = "budget"
        return
    wrong = 0
    for number, each in enumerate(rounds):
        trials = yield Step(experiment=experiment, round=each, done=number, of=len(rounds))
        log.trials += trials
        if any(trial.outcome == Outcome.SKIPPED_BUDGET for trial in trials):
            log.refused[experiment] = "budget"
            return
        wrong = 0 if any(trial.ok for trial in trials) else wrong + 1
        if wrong == GIVE_UP:
            log.refused[experiment] = trials[-1].outcome if trials and not trials[-1].spoilt else "monitor_late"
            return


def _prefix_tokens(log: _Log, left: int) -> int:
    """As long as the prefill measured before asks for, and the budget allows."""
    known = readings.prefill(log.trials)
    most = left // (2 * CACHE_PAIRS) - 16
    return prefix_for(
        prompt_token_s=None if known is None else known.prompt_token_s,
        noise_s=None if known is None else known.noise_s,
        most=most,
    )
