"""What each experiment says, from its trials: an estimate, its interval, and whether it found what it looks for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from app.verdict.diagnosis.design import PREFIX_LEAST
from app.verdict.diagnosis.model import Experiment, Trial
from app.verdict.diagnosis.statistics import line, percentile, rank_correlation, shift, spread
from app.verdict.model import Interval

PAIRS_FROM = 6
"""Pairs from which an interval exists."""
CODE_FASTER = 1.05
"""Plain engines give 0.97 to 1.03; the weakest drafts in use 1.13."""
TOKENS_A_READ = 1.15
LOOSE = 0.5
"""A rank correlation of gap and tokens below this is no buffer: a buffer waits longer for more tokens."""
CACHE_SAVES = 0.1
"""A hit saves at least this share of the cold TTFT above the network."""
REPORTED = 0.5
"""Of the warm calls, so many must report cached tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """Code against prose. `ratio` is speed of code over speed of prose with its interval; `tokens_per_read` of code."""

    ratio: Interval
    prose_tps: float
    code_tps: float
    tokens_per_read: float
    prose_tokens_per_read: float
    looseness: float | None
    """Spearman's rho of gap and tokens: about 0 for drafts, about 1 for a buffer; None where tokens do not vary."""

    @property
    def discrete(self) -> bool:
        """Do reads hold more tokens without having waited for them?"""
        return self.tokens_per_read >= TOKENS_A_READ and self.looseness is not None and self.looseness < LOOSE

    @property
    def found(self) -> bool:
        """Code must be faster; by how much depends on whether the reads say the same."""
        low = self.ratio.low
        return low is not None and low > (1.0 if self.discrete and self.ratio.value > CODE_FASTER else CODE_FASTER)


def drafts(trials: Sequence[Trial]) -> Drafts | None:
    """The content ratio; None with fewer than 6 whole pairs."""
    sides = _pairs(trials, Experiment.SPECULATION, "code", "prose")
    speeds = [(c.tps, p.tps) for c, p in sides if c.tps and p.tps]
    if len(speeds) < PAIRS_FROM or (found := shift([math.log(c / p) for c, p in speeds])) is None:
        return None
    gaps, counts = _reads([c for c, _ in sides])
    _, prose = _reads([p for _, p in sides])
    return Drafts(
        ratio=_exp(found),
        prose_tps=median(p for _, p in speeds),
        code_tps=median(c for c, _ in speeds),
        tokens_per_read=mean(counts) if counts else 1.0,
        prose_tokens_per_read=mean(prose) if prose else 1.0,
        looseness=rank_correlation(gaps, counts) if len({round(n) for n in counts}) > 1 else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """TTFT over the length of the prompt: `start_s` for the shortest one, seconds a token, and the spread about the line."""

    start_s: float
    prompt_token_s: float
    noise_s: float
    high_s: float
    """The ninth decile about the line: what waiting adds at its worst."""
    calls: int


def prefill(trials: Sequence[Trial]) -> Prefill | None:
    """A robust line through TTFT over tokens that were not in the cache; None with fewer than 8 calls."""
    seen = [t for t in trials if t.test is Experiment.LENGTHS and t.ok and t.ttft_s is not None]
    points = [(float((t.prompt_tokens or int(t.arm)) - (t.cached_tokens or 0)), t.ttft_s or 0.0) for t in seen]
    fitted = line(points) if len(points) >= 8 else None
    if fitted is None:
        return None
    start, slope = fitted
    rest = [y - start - slope * x for x, y in points]
    shortest = min(x for x, _ in points)
    return Prefill(
        start_s=max(0.0, start + slope * shortest),
        prompt_token_s=max(0.0, slope),
        noise_s=spread(rest) or 0.0,
        high_s=percentile(rest, 0.9),
        calls=len(points),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Cold against warm prefixes: seconds saved with their interval, and the share of warm calls that report a hit."""

    saved: Interval
    cold_s: float
    reported: float
    prefix_tokens: float
    answered: float
    """Share of pairs in which the second call was clearly faster: under 1 where replicas do not share their caches."""

    @property
    def found(self) -> bool:
        """Reported by the server, or a saving that noise does not explain."""
        return self.reported >= REPORTED or (
            self.saved.low is not None and self.saved.low > 0 and self.saved.value > CACHE_SAVES * self.cold_s
        )


def hits(trials: Sequence[Trial]) -> Hits | None:
    """The effect of a repeated prefix; None with fewer than 6 whole pairs."""
    sides = [
        (c, w) for c, w in _pairs(trials, Experiment.CACHE, "cold", "warm") if c.ttft_s is not None and w.ttft_s is not None
    ]
    saved = [(c.ttft_s or 0.0) - (w.ttft_s or 0.0) for c, w in sides]
    if len(saved) < PAIRS_FROM or (found := shift(saved)) is None:
        return None
    warm_hit = [(w.cached_tokens or 0) > max((c.cached_tokens or 0), PREFIX_LEAST // 8) for c, w in sides]
    return Hits(
        saved=found,
        cold_s=median((c.ttft_s or 0.0) - (c.connect_s or 0.0) for c, _ in sides),
        reported=mean(warm_hit),
        prefix_tokens=median(float(c.prompt_tokens or 0) for c, _ in sides),
        answered=mean(each > found.value / 2 for each in saved),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Seconds a token with one, two and four streams at once."""

    one_s: float
    two_s: float
    four_s: float | None
    """None where the provider may not be sent four at once."""

    @property
    def two(self) -> float:
        """How much two at once stretch it."""
        return self.two_s / self.one_s

    @property
    def four(self) -> float | None:
        """How much four at once stretch it."""
        return None if self.four_s is None else self.four_s / self.one_s


def sharing(trials: Sequence[Trial]) -> Sharing | None:
    """Medians over the ramps; None where one or two streams have fewer than 2 calls that count."""
    times = {
        arm: [1 / t.tps for t in trials if t.test is Experiment.STREAMS and t.arm == arm and t.ok and t.tps]
        for arm in ("1", "2", "4")
    }
    if any(len(times[arm]) < 2 for arm in ("1", "2")):
        return None
    four = median(times["4"]) if len(times["4"]) > 1 else None
    return Sharing(one_s=median(times["1"]), two_s=median(times["2"]), four_s=four)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How evenly single streams ran: the ninth decile of their gaps over the median gap, and how speed varied by call."""

    unevenness: float
    sway: float | None


def course(trials: Sequence[Trial]) -> Course | None:
    """Of prose, one stream at a time; None with fewer than 4 streams that count."""
    alone = [
        t
        for t in trials
        if t.ok and t.tps and (t.arm == "prose" or (t.test is Experiment.STREAMS and t.arm == "1")) and len(t.stamps_s) >= 8
    ]
    if len(alone) < 4:
        return None
    return Course(unevenness=median(_unevenness(t) for t in alone), sway=spread([math.log(t.tps) for t in alone if t.tps]))


def _unevenness(trial: Trial) -> float:
    gaps = [b - a for a, b in pairwise(trial.stamps_s)]
    middle = median(gaps)
    return mean(gaps) / middle if middle > 0 else 1.0


def _pairs(trials: Sequence[Trial], test: Experiment, one: str, other: str) -> list[tuple[Trial, Trial]]:
    """Both sides of each pair that is whole."""
    sides = {(t.arm, t.pair): t for t in trials if t.test is test and t.ok}
    numbers = sorted({pair for arm, pair in sides if arm == one})
    return [(sides[one, n], sides[other, n]) for n in numbers if (other, n) in sides]


def _reads(trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
    """Gaps and tokens of all reads but the first, each gap over its stream's median, so that streams can be put together."""
    gaps, tokens = list[float](), list[float]()
    for trial in trials:
        spans = [b - a for a, b in pairwise(trial.stamps_s)]
        middle = median(spans) if spans else 0.0
        if middle > 0:
            gaps += [span / middle for span in spans]
            tokens += trial.tokens[1:]
    return gaps, tokens


def _exp(i: Interval) -> Interval:
    return Interval(
        value=math.exp(i.value),
        low=None if i.low is None else math.exp(i.low),
        high=None if i.high is None else math.exp(i.high),
        n=i.n,
    )
