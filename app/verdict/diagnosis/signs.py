"""What the experiments show, as signs that speak for or against causes. Each holds, does not hold, or could not be seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from app.expectation.model import Basis, Confidence, Expectation
from app.units import format_duration
from app.verdict.diagnosis.design import PREFILL_TOKENS
from app.verdict.diagnosis.model import Before, Sign, Trial
from app.verdict.diagnosis.readings import CODE_FASTER, REPORTED, Course, Drafts, Hits, Prefill, Sharing

SLOW = 0.75
"""Of its own speed before; of an expectation it must be less, for that has its own spread."""
SLOW_PHYSICS = 0.6
FAST = 1.25
SPILL = (0.08, 0.30)
"""Weights in host memory: published rows lie at 0.12 to 0.22 of expected speed, and a part of them less far off."""
LATE_S = 0.1
"""A first token is late when it comes half as late again as before, and by this much."""
LATE_ALONE_S = 0.4
"""The same without anything to compare with, over round trip and prefill."""
FAR_S, FAR_ALONE_S = 0.05, 0.15
UNEVEN, UNEVEN_MORE = 1.25, 1.2
SWAYS = 0.06
STEEPER, STEEPER_ALONE = 1.6, 2.5
SHARED = {2: 1.12, 4: 1.25}
"""What streams at once may stretch a token by before they share something scarce."""
SPOILT = 0.2
FELL = 0.93
"""The content ratio has fallen when all of its interval lies under this share of what it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that was measured, and what it may be compared with."""

    trials: Sequence[Trial]
    before: Before
    expectation: Expectation | None = None
    drafts: Drafts | None = None
    prefill: Prefill | None = None
    hits: Hits | None = None
    sharing: Sharing | None = None
    course: Course | None = None
    only_here: bool | None = None
    """Do other locations not see it?"""

    @property
    def prose_tps(self) -> float | None:
        """Speed of one stream of prose."""
        if self.drafts is not None:
            return self.drafts.prose_tps
        return None if self.sharing is None else 1 / self.sharing.one_s

    @property
    def connect_s(self) -> float | None:
        """One round trip."""
        found = [t.connect_s for t in self.trials if t.connect_s is not None]
        return median(found) if found else None

    @property
    def start_s(self) -> float | None:
        """TTFT of a short prompt."""
        if self.prefill is not None:
            return self.prefill.start_s
        short = [t.ttft_s for t in self.trials if t.ok and t.ttft_s is not None and t.arm in {"prose", "code"}]
        return median(short) if len(short) >= 4 else None

    def now(self) -> Before:
        """The figures of this diagnosis, to hold a later one against."""
        return Before(
            prose_tps=self.prose_tps,
            code_tps=None if self.drafts is None else self.drafts.code_tps,
            start_s=self.start_s,
            prompt_token_s=None if self.prefill is None else self.prefill.prompt_token_s,
            connect_s=self.connect_s,
            unevenness=None if self.course is None else self.course.unevenness,
            sway=None if self.course is None else self.course.sway,
            speculated=None if self.drafts is None else self.drafts.found,
            code_over_prose=None if self.drafts is None else self.drafts.ratio.value,
            cached=None if self.hits is None else self.hits.found,
            cache_saves_s=None if self.hits is None else self.hits.saved.value,
            cache_prefix_tokens=None if self.hits is None else self.hits.prefix_tokens,
            cache_reported=None if self.hits is None else self.hits.reported >= REPORTED,
        )


def signs_of(seen: Seen) -> tuple[Sign, ...]:
    """All signs, those that could not be seen among them."""
    return (*_speed(seen), *_start(seen), *_stream(seen), *_drafts(seen), *_cache(seen), *_around(seen))


def _speed(seen: Seen) -> Iterator[Sign]:
    ratio, of = pace(seen)
    told = "speed is not known" if ratio is None else f"{ratio:.2f} of {of}"
    limit = SLOW if seen.before.prose_tps is not None else SLOW_PHYSICS
    yield Sign(name="slow", holds=None if ratio is None else ratio < limit, says=f"generates {told}")
    crawls = None if ratio is None else SPILL[0] <= ratio <= SPILL[1]
    yield Sign(name="crawls", holds=crawls, says=f"{told}; weights in host memory give 0.1 to 0.3")
    physics = _physics(seen)
    over = None if physics is None or seen.prose_tps is None else seen.prose_tps / physics[1]
    above = seen.expectation.ceiling_tps if seen.expectation is not None else None
    fast = None if over is None else over > FAST or bool(above and seen.prose_tps and seen.prose_tps > above)
    yield Sign(name="fast", holds=fast, says="" if over is None else f"{over:.2f} of what the deployment should reach")


def pace(seen: Seen) -> tuple[float | None, str]:
    """Speed over what it was, else over what it should be; and what that is called."""
    if seen.prose_tps is None:
        return None, ""
    if seen.before.prose_tps is not None:
        return seen.prose_tps / seen.before.prose_tps, f"the {seen.before.prose_tps:.4g} tokens/s of before"
    if (physics := _physics(seen)) is not None:
        return seen.prose_tps / physics[0], f"the {physics[0]:.4g} tokens/s expected"
    return None, ""


def _physics(seen: Seen) -> tuple[float, float] | None:
    """The ends of what is expected, where that may be used to accuse."""
    e = seen.expectation
    if e is None or e.confidence is Confidence.LOW:
        return None
    if e.basis is Basis.FEASIBLE_RANGE:
        return e.expected_range_tps
    return None if e.expected_tps is None else (e.expected_tps, e.expected_tps)


def _start(seen: Seen) -> Iterator[Sign]:
    start, rtt, before = seen.start_s, seen.connect_s, seen.before
    waits = None if start is None or rtt is None else max(0.0, start - rtt)
    was = None if before.start_s is None else max(0.0, before.start_s - (before.connect_s or 0.0))
    late = None
    if start is not None:
        late = start > 1.5 * before.start_s + LATE_S if before.start_s is not None else start > LATE_ALONE_S
    then = "" if before.start_s is None else f" ({format_duration(before.start_s)} before)"
    yield Sign(name="late", holds=late, says="" if start is None else f"first token after {format_duration(start)}{then}")
    long = None
    if waits is not None:
        long = waits > 1.5 * was + LATE_S if was is not None else waits > LATE_ALONE_S
    text = "" if waits is None else f"{format_duration(waits)} of it is neither network nor length of the prompt"
    yield Sign(name="waits", holds=long, says=text)
    yield _steeper(seen)
    queues = [t.queue_s for t in seen.trials if t.ok and t.queue_s is not None]
    told = median(queues) if len(queues) >= 4 else None
    text = "" if told is None else f"the server itself reports {format_duration(told)} in its queue"
    yield Sign(name="reports_queue", holds=None if told is None else told > LATE_S, says=text)


def _steeper(seen: Seen) -> Sign:
    """Does each token of the prompt cost more than before, or than it should?"""
    slope, was = None if seen.prefill is None else seen.prefill.prompt_token_s, seen.before.prompt_token_s
    if slope is None or seen.prefill is None:
        return Sign(name="slow_prefill", holds=None, says="")
    text = f"{slope * 1e6:.0f} µs for each token of the prompt"
    noise = seen.prefill.noise_s / 4096
    if was is not None:
        return Sign(name="slow_prefill", holds=slope > STEEPER * was + 2 * noise, says=f"{text} ({was * 1e6:.0f} before)")
    longest = None if seen.expectation is None else seen.expectation.prefill_s
    if longest is None:
        return Sign(name="slow_prefill", holds=None, says=text)
    return Sign(name="slow_prefill", holds=slope > STEEPER_ALONE * longest[1] / PREFILL_TOKENS + 2 * noise, says=text)


def _stream(seen: Seen) -> Iterator[Sign]:
    course, before = seen.course, seen.before
    uneven = sways = None
    if course is not None:
        uneven = course.unevenness > max(UNEVEN, UNEVEN_MORE * (before.unevenness or 1.0))
        sways = None if course.sway is None else course.sway > max(SWAYS, 2 * (before.sway or 0.0))
    text = "" if course is None else f"mean gap {course.unevenness:.2f} of the median gap"
    yield Sign(name="uneven", holds=uneven, says=text)
    text = "" if course is None or course.sway is None else f"speed varies by {100 * course.sway:.0f} % from call to call"
    yield Sign(name="sways", holds=sways, says=text)
    yield _shares(seen)


def _shares(seen: Seen) -> Sign:
    if seen.sharing is None:
        return Sign(name="shares", holds=None, says="")
    streams, stretch = (2, seen.sharing.two) if seen.sharing.four is None else (4, seen.sharing.four)
    text = f"{streams} streams at once take {stretch:.2f} times as long a token as one"
    return Sign(name="shares", holds=stretch > SHARED[streams], says=text)


def _drafts(seen: Seen) -> Iterator[Sign]:
    drafts, before = seen.drafts, seen.before
    text = "" if drafts is None else f"code streams {drafts.ratio.value:.2f} times as fast as prose"
    yield Sign(name="code_faster", holds=None if drafts is None else drafts.found, says=text)
    fell = None
    if drafts is not None and before.speculated is not None and before.code_over_prose is not None:
        high = drafts.ratio.high
        fell = before.speculated and high is not None and high < FELL * before.code_over_prose
        fell = fell and drafts.ratio.value < max(CODE_FASTER, 1 + (before.code_over_prose - 1) / 3)
        text += f" ({before.code_over_prose:.2f} before)"
    yield Sign(name="code_fell", holds=fell, says=text)


def _cache(seen: Seen) -> Iterator[Sign]:
    hits, before = seen.hits, seen.before
    text = "" if hits is None else f"a repeated prefix saves {_ms(hits.saved.value)}"
    yield Sign(name="cache_hits", holds=None if hits is None else hits.found, says=text)
    fell = None
    if hits is not None and before.cached is not None:
        fell = before.cached and not hits.found and _saves_less(hits, before)
        text += f" ({_ms(before.cache_saves_s)} before)" if before.cache_saves_s is not None else ""
    yield Sign(name="cache_fell", holds=fell, says=text)


def _saves_less(hits: Hits, before: Before) -> bool:
    """Does the server that reported hits report none, or does a prefix save less than half, by all of its interval less?"""
    if before.cache_reported:
        return True
    if hits.saved.high is None or before.cache_saves_s is None:
        return False
    scale = hits.prefix_tokens / before.cache_prefix_tokens if before.cache_prefix_tokens else 1.0
    return hits.saved.value < before.cache_saves_s * scale / 2 and hits.saved.high < before.cache_saves_s * scale


def _around(seen: Seen) -> Iterator[Sign]:
    rtt, was = seen.connect_s, seen.before.connect_s
    far = None
    if rtt is not None:
        far = rtt > 2 * was + FAR_S if was is not None else rtt > FAR_ALONE_S
    then = "" if was is None else f" ({format_duration(was)} before)"
    yield Sign(name="far", holds=far, says="" if rtt is None else f"a round trip takes {format_duration(rtt)}{then}")
    made = len(seen.trials)
    spoilt = sum(t.spoilt for t in seen.trials)
    late = None if not made else spoilt / made > SPOILT
    yield Sign(name="monitor_late", holds=late, says=f"{spoilt} of {made} calls were spoilt by this machine being late")
    yield Sign(name="only_here", holds=seen.only_here, says="other locations see nothing of it")


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"
