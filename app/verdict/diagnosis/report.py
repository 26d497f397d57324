"""The report of a diagnosis: results by experiment, ranked causes, and a paragraph that a person understands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from app.verdict.diagnosis.causes import SLOWING, SPEEDING, rank
from app.verdict.diagnosis.model import Before, Cause, Diagnosis, Experiment, Result, Sign, Suspect
from app.verdict.diagnosis.signs import Seen, pace, signs_of
from app.verdict.model import Interval

SLOW_SIGNS = frozenset({"slow", "crawls", "late", "waits", "code_fell", "cache_fell", "far", "slow_prefill"})
WORDS: Mapping[Cause, str] = {
    Cause.QUEUE: "requests wait in a queue",
    Cause.CONTENTION: "the replica is crowded: others' streams and prompts share its steps",
    Cause.SPILL: "a part of the weights lies in host memory",
    Cause.SLOWER_MACHINE: "a slower or degraded machine serves it",
    Cause.SPECULATION_OFF: "speculative decoding was switched off",
    Cause.CACHE_LOST: "its prompt cache is gone",
    Cause.NETWORK: "the network between here and there is slow",
    Cause.MONITOR: "this machine itself is late",
    Cause.SPECULATION: "it decodes speculatively",
    Cause.PROMPT_CACHE: "it answers from a prompt cache",
    Cause.OTHER_DEPLOYMENT: "it is not the declared deployment: smaller weights, other hardware or another model",
    Cause.NOTHING: "nothing is wrong that these tests can see",
}
_WHY = {
    "budget": "the budget does not carry it",
    "not_asked": "it was not asked for",
    "monitor_late": "this machine was late",
    "max_concurrency": "the provider may not be sent two streams at once",
    "too_few": "too few calls went well",
}


def report(target: str, seen: Seen, refused: Mapping[Experiment, str]) -> Diagnosis:
    """Everything that was found, and what could not be."""
    signs = signs_of(seen)
    holding = {sign.name for sign in signs if sign.holds}
    complaint = _complaint(seen, holding)
    suspects = rank(signs, among=SPEEDING if complaint == "fast" else SLOWING)
    results = (*(_result(e, seen, refused) for e in Experiment), *_free(seen, signs))
    return Diagnosis(
        target=target,
        complaint=complaint,
        suspects=suspects,
        results=results,
        signs=signs,
        now=seen.now(),
        calls=len(seen.trials),
        tokens=sum(trial.tokens_used for trial in seen.trials),
        explanation=_explain(target, complaint, suspects, results, holding),
    )


def _complaint(seen: Seen, holding: set[str]) -> str:
    if seen.prose_tps is None and seen.start_s is None:
        return "unknown"
    return "slow" if holding & SLOW_SIGNS else "fast" if "fast" in holding else "none"


def _result(experiment: Experiment, seen: Seen, refused: Mapping[Experiment, str]) -> Result:
    if not any(trial.test is experiment for trial in seen.trials):
        return Result(test=experiment, ran=False, reason=refused.get(experiment, "too_few"))
    figures, says = _FIGURES[experiment](seen)
    if figures is None:
        return Result(test=experiment, ran=False, reason=refused.get(experiment, "too_few"))
    return Result(test=experiment, ran=True, reason=refused.get(experiment), figures=figures, says=says)


Figures = tuple[dict[str, float | bool | None] | None, str]


def _drafts(seen: Seen) -> Figures:
    d = seen.drafts
    if d is None:
        return None, ""
    figures: dict[str, float | bool | None] = {
        "found": d.found,
        **_interval("code_over_prose", d.ratio),
        "code_tps": d.code_tps,
        "prose_tps": d.prose_tps,
        "tokens_per_read_code": d.tokens_per_read,
        "tokens_per_read_prose": d.prose_tokens_per_read,
        "gap_tokens_rho": d.looseness,
    }
    verb = "it decodes speculatively" if d.found else "no sign of speculation"
    return figures, f"{verb}: code streams {d.ratio.value:.2f} times as fast as prose{_between(d.ratio)}"


def _sharing(seen: Seen) -> Figures:
    s = seen.sharing
    if s is None:
        return None, ""
    figures: dict[str, float | bool | None] = {"tpot_s": s.one_s, "two_over_one": s.two, "four_over_one": s.four}
    four = "" if s.four is None else f", four to {s.four:.2f}"
    return figures, f"two streams at once stretch a token to {s.two:.2f}{four} times"


def _prefill(seen: Seen) -> Figures:
    p = seen.prefill
    if p is None:
        return None, ""
    figures: dict[str, float | bool | None] = {
        "start_s": p.start_s,
        "prompt_token_s": p.prompt_token_s,
        "noise_s": p.noise_s,
        "high_s": p.high_s,
        "calls": p.calls,
    }
    return figures, (
        f"first token after {1000 * p.start_s:.0f} ms for a short prompt, "
        f"{1e6 * p.prompt_token_s:.0f} µs more for each token of it"
    )


def _hits(seen: Seen) -> Figures:
    h = seen.hits
    if h is None:
        return None, ""
    figures: dict[str, float | bool | None] = {
        "found": h.found,
        **_interval("saves_s", h.saved),
        "cold_s": h.cold_s,
        "reported_share": h.reported,
        "hit_share": h.answered,
        "prefix_tokens": h.prefix_tokens,
    }
    verb = "it caches prompts" if h.found else "no sign of a prompt cache"
    return figures, f"{verb}: a repeated prefix of {h.prefix_tokens:.0f} tokens saves {1000 * h.saved.value:.0f} ms"


_FIGURES = {
    Experiment.SPECULATION: _drafts,
    Experiment.STREAMS: _sharing,
    Experiment.LENGTHS: _prefill,
    Experiment.CACHE: _hits,
}


def _free(seen: Seen, signs: Sequence[Sign]) -> Iterator[Result]:
    """What costs no calls of its own: pace, evenness, network, locations, and the monitor itself."""
    told = {sign.name: sign for sign in signs}
    ratio, of = pace(seen)
    if ratio is None:
        yield Result(test="pace", ran=False, reason="nothing_to_compare_with" if seen.prose_tps is not None else "too_few")
    else:
        yield Result(test="pace", ran=True, figures={"ratio": ratio}, says=f"{ratio:.2f} of {of}")
    if seen.course is None:
        yield Result(test="evenness", ran=False, reason="too_few")
    else:
        figures = {"mean_gap_over_median": seen.course.unevenness, "sway": seen.course.sway}
        yield Result(test="evenness", ran=True, figures=figures, says=told["uneven"].says)
    if seen.connect_s is None:
        yield Result(test="network", ran=False, reason="no_connections")
    else:
        yield Result(test="network", ran=True, figures={"connect_s": seen.connect_s}, says=told["far"].says)
    if seen.only_here is None:
        yield Result(test="locations", ran=False, reason="one_location")
    else:
        says = "other locations see nothing of it" if seen.only_here else "other locations see it too"
        yield Result(test="locations", ran=True, figures={"only_here": seen.only_here}, says=says)
    spoilt = sum(trial.spoilt for trial in seen.trials)
    yield Result(test="monitor", ran=True, figures={"calls_spoilt": spoilt}, says=told["monitor_late"].says)


def _explain(target: str, complaint: str, suspects: Sequence[Suspect], results: Sequence[Result], holding: set[str]) -> str:
    first = suspects[0]
    opening = {
        "slow": f"{target} is slower than it was or should be.",
        "fast": f"{target} is faster than its declared deployment should be.",
        "none": f"{target} shows nothing unusual.",
        "unknown": f"{target} could not be examined.",
    }[complaint]
    sentences = [opening]
    if complaint in {"slow", "fast"}:
        because = f": {'; '.join(first.evidence[:3])}" if first.evidence else ""
        sentences.append(f"Most likely ({100 * first.probability:.0f} %) {WORDS[first.cause]}{because}.")
        others = [s for s in suspects[1:3] if s.probability >= 0.05]
        if others:
            told = " or ".join(f"{WORDS[s.cause]} ({100 * s.probability:.0f} %)" for s in others)
            sentences.append(f"Else {told}.")
    if "code_faster" in holding and complaint != "fast":
        sentences.append("It decodes speculatively.")
    if "cache_hits" in holding:
        sentences.append("It caches prompts.")
    missing = [
        f"{r.test.replace('_', ' ')} ({_WHY.get(str(r.reason), str(r.reason).replace('_', ' '))})" for r in results if not r.ran
    ]
    if missing:
        sentences.append(f"Could not run: {', '.join(missing)}.")
    return " ".join(sentences)


def _interval(name: str, i: Interval) -> dict[str, float | bool | None]:
    return {name: i.value, f"{name}_low": i.low, f"{name}_high": i.high, "pairs": i.n}


def _between(i: Interval) -> str:
    return "" if i.low is None or i.high is None else f" (95 % interval {i.low:.2f} to {i.high:.2f})"


def before_of(document: Mapping[str, Any]) -> Before:
    """The figures of an earlier report (`diagnosis_json`), to compare with; what is missing or odd in it is unknown."""
    figures = document.get("figures")
    known = {field.name: field.type for field in fields(Before)}
    stated = figures if isinstance(figures, Mapping) else {}
    return Before(**{name: value for name, value in stated.items() if name in known and _is_figure(known[name], value)})


def _is_figure(kind: Any, value: Any) -> bool:  # noqa: ANN401 - JSON
    """Is a value of the kind that the field wants?"""
    if "bool" in str(kind):
        return isinstance(value, bool)
    return isinstance(value, int | float) and not isinstance(value, bool)


def diagnosis_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The report as JSON: `bandwatch diagnose --json` and the API."""
    return {
        "target": diagnosis.target,
        "complaint": diagnosis.complaint,
        "causes": [
            {
                "cause": str(s.cause),
                "probability": round(s.probability, 4),
                "words": WORDS[s.cause],
                "evidence": list(s.evidence),
                "against": list(s.against),
            }
            for s in diagnosis.suspects
        ],
        "tests": [{**asdict(r), "test": str(r.test), "figures": dict(r.figures)} for r in diagnosis.results],
        "not_run": [{"test": str(r.test), "reason": r.reason} for r in diagnosis.results if not r.ran],
        "signs": {sign.name: sign.holds for sign in diagnosis.signs},
        "figures": asdict(diagnosis.now),
        "calls": diagnosis.calls,
        "tokens": diagnosis.tokens,
        "explanation": diagnosis.explanation,
    }
