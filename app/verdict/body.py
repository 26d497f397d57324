"""Verdicts and incidents as the JSON of the public interface, shared by alerts, the API and the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from app.units import format_duration
from app.verdict.explain import tps
from app.verdict.model import MONITOR, Change, ChangeKind, Incident, IncidentState, State, Verdict

RULE_WORDS = {
    "below_expectation": "generates slower than expected",
    "slow_first_token": "is slow to its first token",
    "regressed": "is slower than its own past",
    "above_ceiling": "is faster than its declared deployment can be",
    "unavailable": "is failing",
    "auth": "refuses our key",
    "not_found": "does not know the model",
    "bad_request": "refuses our request",
    "quota": "says that our quota is used up",
    "budget": "spends the whole output on hidden reasoning",
    "monitor": "is in trouble",
}
_ADVICE = {
    "auth": "check the key",
    "not_found": "check the model's name",
    "bad_request": "check the recipe and the model's parameters",
    "quota": "raise the account's quota or probe less often",
    "budget": "raise the recipe's output tokens or choose another recipe",
}


def rfc3339(at: datetime) -> str:
    """An instant in UTC with milliseconds and a Z."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict object of the contract, with the observed interval, TTFT and the target's own level beside it."""
    return {
        "target": verdict.target,
        "location": verdict.location,
        "state": str(verdict.state),
        "severity": str(verdict.severity),
        "since": rfc3339(verdict.since),
        "observed": verdict.observed,
        "expected": verdict.expected,
        "ceiling": verdict.ceiling,
        "ratio": verdict.ratio,
        "ceiling_ratio": verdict.ceiling_ratio,
        "confidence": str(verdict.confidence),
        "samples": verdict.samples,
        "window_s": verdict.window_s,
        "basis": None if verdict.basis is None else str(verdict.basis),
        "assumptions": list(verdict.assumptions),
        "reasons": list(verdict.reasons),
        "explanation": verdict.explanation,
        "fit_for": list(verdict.fit_for),
        "checked_at": rfc3339(verdict.checked_at),
        "observed_interval": _pair(verdict.observed_low, verdict.observed_high),
        "ttft_s": {"p50": verdict.ttft_p50_s, "p95": verdict.ttft_p95_s},
        "baseline": None
        if verdict.baseline_since is None
        else {"tps": verdict.baseline, "before_tps": verdict.baseline_before, "since": rfc3339(verdict.baseline_since)},
    }


def incident_json(incident: Incident) -> dict[str, Any]:
    """The incident object of the contract, with its summary and why it ended."""
    return {
        "id": incident.id,
        "target": incident.target,
        "provider": incident.provider,
        "model": incident.model,
        "location": incident.location,
        "rule": incident.rule,
        "severity": str(incident.severity),
        "state": str(incident.state),
        "opened_at": rfc3339(incident.opened_at),
        "resolved_at": _maybe(incident.resolved_at),
        "acknowledged_at": _maybe(incident.acknowledged_at),
        "updated_at": rfc3339(incident.updated_at),
        "resolve_reason": incident.resolve_reason,
        "summary": incident.summary,
        "held": incident.held,
    }


def links_json(incident: Incident, *, base_url: str) -> dict[str, str]:
    """Where a person reads on; `base_url` without a slash at its end."""
    return {
        "incident": f"{base_url}/incidents/{quote(incident.id)}",
        "target": f"{base_url}/" if incident.target == MONITOR else f"{base_url}/targets/{quote(incident.target)}",
    }


def change_json(change: Change, *, base_url: str) -> dict[str, Any]:
    """The whole webhook body of a change (docs: contract)."""
    return {
        "type": f"incident.{change.kind}",
        "timestamp": rfc3339(change.at),
        "data": {
            "incident": incident_json(change.incident),
            "verdict": verdict_json(change.verdict),
            "summary": change.summary,
            "links": links_json(change.incident, base_url=base_url),
        },
    }


def summary(kind: ChangeKind, incident: Incident, verdict: Verdict) -> str:
    """One sentence a person can act on: who, what, by how much, and what to do where that is known."""
    who = f"{incident.target} from {incident.location}"
    what = RULE_WORDS.get(incident.rule, incident.rule)
    figures = _figures(incident, verdict)
    match kind:
        case ChangeKind.OPENED:
            advice = f"; {_ADVICE[incident.rule]}" if incident.rule in _ADVICE else ""
            return f"{who} {what}{figures}{advice}."
        case ChangeKind.UPDATED:
            return f"{who} {what}, now {incident.severity}{figures}."
        case ChangeKind.REMINDER:
            lasted = format_duration((verdict.checked_at - incident.opened_at).total_seconds())
            return f"{who} still {what} after {lasted}{figures}."
        case _:
            ended = incident.resolved_at or incident.updated_at
            lasted = format_duration((ended - incident.opened_at).total_seconds())
            rule = incident.rule.replace("_", " ")
            if incident.resolve_reason in {None, "recovered"}:
                return f"{who} recovered after {lasted} ({rule}){figures}."
            return f"{who}: closed after {lasted} ({rule}), {str(incident.resolve_reason).replace('_', ' ')}."


def _figures(incident: Incident, verdict: Verdict) -> str:
    if incident.rule == State.UNAVAILABLE:
        codes = [reason.removeprefix("error_") for reason in verdict.reasons if reason.startswith("error_")]
        return f" ({', '.join(codes[:3])})" if codes else ""
    if incident.rule == State.SLOW_FIRST_TOKEN and verdict.ttft_p50_s is not None:
        return f": {format_duration(verdict.ttft_p50_s)} to the first token"
    if incident.rule in {State.BELOW_EXPECTATION, State.ABOVE_CEILING, State.REGRESSED} and verdict.observed is not None:
        limit = verdict.ceiling if incident.rule == State.ABOVE_CEILING else verdict.expected
        beside = (
            f", {tps(limit)} {'at most' if incident.rule == State.ABOVE_CEILING else 'expected'}" if limit is not None else ""
        )
        now = "now " if incident.state is IncidentState.RESOLVED else ""
        return f": {now}{tps(verdict.observed)} tokens/s{beside}"
    return ""


def _pair(low: float | None, high: float | None) -> list[float] | None:
    return None if low is None or high is None else [low, high]


def _maybe(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
