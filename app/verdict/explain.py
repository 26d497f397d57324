"""A verdict in words: one paragraph that a person understands, made of the verdict's own figures."""

from __future__ import annotations

from dataclasses import replace

from app.expectation.model import Basis, Expectation
from app.targets.model import Target
from app.units import format_duration
from app.verdict.evidence import Evidence
from app.verdict.model import State, Verdict

_WORDS = {
    "interactive_chat": "interactive chat",
    "coding_agents": "coding and agents",
    "long_generation": "long generation",
    "voice": "voice",
}
_UNKNOWN = {
    "paused": "It is paused, so nothing is known of it.",
    "no_data": "There has been no run in the window, so nothing is known of it.",
    "stale": "Its last run is too long ago, so nothing is known of it now; is the worker of this location running?",
    "too_few_samples": "Too few reliable runs to judge it.",
}


def explain(verdict: Verdict, *, evidence: Evidence, target: Target, expectation: Expectation | None) -> Verdict:
    """The verdict with its explanation."""
    sentences = [
        _headline(verdict, evidence),
        _observed(verdict),
        _compared(verdict, target, expectation),
        _moved(verdict),
        _first_token(verdict, target, expectation),
        *_because(verdict, evidence, expectation),
        f"Good enough for {' and '.join(_WORDS[name] for name in verdict.fit_for)}." if verdict.fit_for else "",
    ]
    return replace(verdict, explanation=" ".join(sentence for sentence in sentences if sentence))


def tps(value: float) -> str:
    """A speed as a person reads it."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _headline(verdict: Verdict, evidence: Evidence) -> str:
    who = f"{verdict.target} from {verdict.location}"
    match verdict.state:
        case State.OK:
            return f"{who} is as it should be."
        case State.BELOW_EXPECTATION:
            return f"{who} generates slower than it should."
        case State.SLOW_FIRST_TOKEN:
            return f"{who} takes too long to its first token."
        case State.REGRESSED:
            return f"{who} has become slower than its own past."
        case State.ABOVE_CEILING:
            return f"{who} is faster than the declared deployment can be."
        case State.UNAVAILABLE:
            errors = f" ({', '.join(evidence.errors[:3])})" if evidence.errors else ""
            return f"{who} fails: {evidence.against} of {evidence.attempts} calls went wrong at the provider{errors}."
        case _:
            reason = next((reason for reason in verdict.reasons if reason in _UNKNOWN), "no_data")
            return f"{who} cannot be judged. {_UNKNOWN[reason]}"


def _observed(verdict: Verdict) -> str:
    if verdict.observed is None:
        return ""
    interval = ""
    if verdict.observed_low is not None and verdict.observed_high is not None:
        interval = f", 95 % interval {tps(verdict.observed_low)} to {tps(verdict.observed_high)}"
    span = format_duration(verdict.window_s)
    return f"It generates {tps(verdict.observed)} tokens/s (median of {verdict.samples} runs in {span}{interval})."


def _compared(verdict: Verdict, target: Target, expectation: Expectation | None) -> str:
    if verdict.observed is None or verdict.basis is None:
        return ""
    ceiling = f"; the ceiling is {tps(verdict.ceiling)}" if verdict.ceiling is not None else ""
    if verdict.expected is None or verdict.ratio is None:
        low, high = (expectation.expected_range_tps if expectation is not None else None) or (0.0, 0.0)
        return f"That lies within the {tps(low)} to {tps(high)} tokens/s of the deployments that are possible{ceiling}."
    share = f"{100 * verdict.ratio:.0f} % of the {tps(verdict.expected)} tokens/s"
    match verdict.basis:
        case Basis.SLO:
            return f"That is {share} promised{ceiling}."
        case Basis.BASELINE:
            return f"That is {share} of its own past{ceiling}."
        case Basis.FEASIBLE_RANGE:
            side = "slowest" if verdict.ratio < 1 else "fastest"
            return f"That is {share} of the {side} deployment that is possible{ceiling}."
        case Basis.LAYER_LAW:
            return f"That is {share} expected of {_deployment(target, expectation)} by the time its layers take."
        case _:
            return f"That is {share} expected of {_deployment(target, expectation)}{ceiling}."


def _moved(verdict: Verdict) -> str:
    if verdict.baseline is None or verdict.baseline_before is None or verdict.baseline_since is None:
        return ""
    way = "fell" if verdict.baseline < verdict.baseline_before else "rose"
    day = verdict.baseline_since.date().isoformat()
    return f"Its own level {way} from {tps(verdict.baseline_before)} to {tps(verdict.baseline)} tokens/s on {day}."


def _deployment(target: Target, expectation: Expectation | None) -> str:
    if expectation is None or expectation.hardware is None:
        return "this deployment"
    devices = f"{expectation.devices} x " if expectation.devices is not None else ""
    model = expectation.model_spec or target.model
    at = f" at {expectation.quantization}" if expectation.quantization is not None else ""
    return f"{model}{at} on {devices}{expectation.hardware}"


def _first_token(verdict: Verdict, target: Target, expectation: Expectation | None) -> str:
    if verdict.ttft_p50_s is None:
        return ""
    parts = [f"Its first token comes after {format_duration(verdict.ttft_p50_s)} (median)"]
    if "slo_ttft_missed" in verdict.reasons and target.slo is not None and target.slo.ttft_p95_s is not None:
        parts.append(f"and more than one call in twenty takes over the {format_duration(target.slo.ttft_p95_s)} promised")
    if "ttft_far_over_expected" in verdict.reasons and expectation is not None and expectation.prefill_s is not None:
        parts.append(f"while reading the prompt should take {format_duration(expectation.prefill_s[1])} at most")
    if "first_token_later_than_own_past" in verdict.reasons:
        parts.append("far later than in its own past")
    return ", ".join(parts) + "."


def _because(verdict: Verdict, evidence: Evidence, expectation: Expectation | None) -> list[str]:
    """Sentences for the reasons that help a person to act."""
    waits = sum(evidence.kinds.get(kind, 0) for kind in ("rate_limited", "quota"))
    ours = {
        "auth": "the key was refused",
        "not_found": "the model was not found",
        "bad_request": "the request was refused",
        "quota": "the account's quota is used up",
        "budget": "the whole output went into hidden reasoning",
        "skipped_budget": "our budget is used up",
        "local_error": "the monitor itself was in trouble",
    }
    told = [f"{text} ({evidence.kinds[kind]} times)" for kind, text in ours.items() if kind in verdict.reasons]
    possible = {
        "host_memory_spill_fits": "Weights spilled to host memory would look like this.",
        "impossible_as_declared": "Speculative decoding, smaller weights, other hardware or a cached answer would explain it.",
        "tuned_or_speculative": "That is more than a plain engine gives: tuned, or decoding speculatively.",
        "low_confidence": "What is known of this deployment is too uncertain to flag anything.",
        "does_not_fit_memory": "As declared, the model does not fit the memory of its devices; check the deployment.",
        "only_here": "Other locations see nothing of it, so the network of this one is suspected.",
        "seen_from_several_locations": "Several locations see it.",
        "too_few_locations": "Too few locations see it to announce it.",
        "no_expectation": "Nothing is known to compare its speed with yet.",
        "some_failures": f"{evidence.against} of {evidence.attempts} calls failed."
        if verdict.state is not State.UNAVAILABLE
        else "",
        "contaminated_samples_left_out": f"{evidence.contaminated} runs were left out because the monitor itself was late.",
    }
    sentences = [sentence for reason, sentence in possible.items() if reason in verdict.reasons]
    if told:
        sentences.append(f"Runs that say nothing of its speed: {', '.join(told)}.")
    if waits and "rate_limited" in verdict.reasons:
        sentences.append(f"{waits} runs were rate-limited.")
    if expectation is not None and expectation.assumptions and verdict.state not in {State.OK, State.UNKNOWN}:
        sentences.append(f"Assumed: {'; '.join(expectation.assumptions)}.")
    return sentences
