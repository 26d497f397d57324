"""Outcome and error class of a run: the rules of docs/measurement.md, in order; the first that matches wins."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.measurement.complaint import Complaint, clean, complaint, complaint_of_body
from app.measurement.model import ErrorClass, Outcome
from app.measurement.recording import FailureKind, Recording
from app.measurement.stream import Stream

_CONTEXT = re.compile(
    r"context[ _-]?(length|size|window)|maximum context|exceed_context|too long for|prompt (is )?too long"
    r"|too_many_prompt_tokens"
    r"|token limit|max(imum)?[ _](prompt|input)[ _](length|tokens)|reduce the length|inputs? tokens \+"
)
_KEY = re.compile(
    r"api[ _-]?key|(incorrect|invalid|wrong|missing) key|key is (invalid|not valid)|credential"
    r"|authenticat|unauthori[sz]ed|bearer"
)
_GONE = re.compile(r"decommissioned|not[ _]found|no endpoints|model_not_found|does not exist")
_QUOTA = re.compile(
    r"insufficient[ _](quota|balance|credit|fund)|exceeded your current quota|out of credit|credit balance"
    r"|not enough (credit|balance)"
    r"|payment required"
)
_OVERLOADED = re.compile(r"overload|capacity|busy|\b1305\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """Whose problem a run is, which kind, and the complaint in one clean line."""

    outcome: Outcome
    error_class: ErrorClass
    text: str | None = None


_O, _E = Outcome, ErrorClass
_WIRE = {
    FailureKind.BUDGET: (_O.SKIPPED_BUDGET, _E.BUDGET),
    FailureKind.LOCAL: (_O.LOCAL_ERROR, _E.LOCAL),
    FailureKind.CANCELLED: (_O.LOCAL_ERROR, _E.LOCAL),
    FailureKind.DNS: (_O.PROVIDER_ERROR, _E.DNS),
    FailureKind.CONNECT: (_O.PROVIDER_ERROR, _E.CONNECT),
    FailureKind.TLS: (_O.PROVIDER_ERROR, _E.TLS),
    FailureKind.RESET: (_O.PROVIDER_ERROR, _E.RESET),
    FailureKind.PROTOCOL: (_O.PROVIDER_ERROR, _E.RESET),
    FailureKind.DEADLINE_CONNECT: (_O.TIMEOUT, _E.TIMEOUT),
    FailureKind.DEADLINE_FIRST_TOKEN: (_O.TIMEOUT, _E.TIMEOUT),
    FailureKind.DEADLINE_TOTAL: (_O.TIMEOUT, _E.TIMEOUT),
    FailureKind.STALL: (_O.STALLED, _E.STALL),
    FailureKind.OVERSIZE: (_O.MALFORMED, _E.OVERSIZE),
}


_TIMED = frozenset(
    {FailureKind.DEADLINE_CONNECT, FailureKind.DEADLINE_FIRST_TOKEN, FailureKind.DEADLINE_TOTAL, FailureKind.STALL}
)
LATE_SHARE = 0.05
FROZEN_SHARE = 0.5
LATE_FROM_S = 0.5
"""What is less is no reason, however short the run was."""


def classify(recording: Recording, stream: Stream) -> Classified:
    """Rules 1 to 20. A wire failure after the stream had ended properly (finish or `[DONE]`) is no failure."""
    failure = recording.failure
    ended = stream.done_seen or stream.finish_reason is not None
    harmless = failure is not None and failure.kind in {FailureKind.RESET, FailureKind.PROTOCOL, FailureKind.STALL}
    if failure is not None and not (harmless and ended and not stream.errors):
        outcome, error_class = _WIRE[failure.kind]
        if (late_s := _late_by(recording)) and outcome is not _O.SKIPPED_BUDGET:
            text = clean(f"this host was {late_s:.1f} s late meanwhile: {failure.text}")
            return Classified(outcome=_O.LOCAL_ERROR, error_class=_E.LOCAL, text=text)
        return Classified(outcome=outcome, error_class=error_class, text=clean(failure.text))
    if stream.oversize:
        return Classified(outcome=_O.MALFORMED, error_class=_E.OVERSIZE, text="an event is larger than 1 MiB")
    if recording.status != 200:
        found = complaint_of_body(recording.tape.body)
        if stream.errors:
            found = complaint(stream.errors[0])
        text = found.message or f"HTTP {recording.status}"
        outcome, error_class = by_status(recording.status or 500, found.words, context=True)
        return Classified(outcome=outcome, error_class=error_class, text=text)
    return _of_200(recording, stream)


def _late_by(recording: Recording) -> float | None:
    """Seconds that this host was late, where a failure may be its own fault: a deadline that it may have missed by itself (a
    twentieth of the time), or anything else that happened while it stood still (half of it).
    """
    marks, failure, lag_s = recording.marks, recording.failure, recording.host.loop_lag_max_s
    if failure is None or marks.closed is None or lag_s is None or lag_s < LATE_FROM_S:
        return None
    share = LATE_SHARE if failure.kind in _TIMED else FROZEN_SHARE
    return lag_s if lag_s * 1e9 > share * (marks.closed - marks.started) else None


def _of_200(recording: Recording, stream: Stream) -> Classified:
    if stream.undecodable:
        return Classified(outcome=_O.MALFORMED, error_class=_E.NOT_SSE, text="an event of the stream is not JSON")
    if stream.errors:
        found = complaint(stream.errors[0])
        return _in_band(found, context=stream.error_before_output)
    if stream.events == 0 and not stream.cut_off:
        return _without_events(recording.tape.body, stream)
    reason = stream.finish_reason
    if reason == "content_filter":
        return Classified(outcome=_O.CONTENT_FILTER, error_class=_E.CONTENT_FILTER)
    if reason == "error":
        return Classified(outcome=_O.PROVIDER_ERROR, error_class=_E.SERVER_ERROR, text="it finished with reason 'error'")
    if reason is None and not stream.done_seen:
        return Classified(outcome=_O.TRUNCATED, error_class=_E.TRUNCATED, text="it ended without a finish reason or [DONE]")
    if not stream.outputs:
        return Classified(outcome=_O.EMPTY, error_class=_E.EMPTY, text="the stream ended properly without any output")
    return Classified(outcome=_O.OK, error_class=_E.NONE)


def _without_events(body: bytes, stream: Stream) -> Classified:
    if not body.strip():
        return Classified(outcome=_O.EMPTY, error_class=_E.EMPTY, text="a 200 without a body")
    if b'"content_filter"' in body and b'"finish_reason"' in body:
        return Classified(outcome=_O.CONTENT_FILTER, error_class=_E.CONTENT_FILTER)
    if stream.done_seen:
        return Classified(outcome=_O.EMPTY, error_class=_E.EMPTY, text="nothing but [DONE]")
    found = complaint_of_body(body)
    return Classified(outcome=_O.MALFORMED, error_class=_E.NOT_SSE, text=found.message or "the body is not an event stream")


def _in_band(found: Complaint, *, context: bool) -> Classified:
    outcome, error_class = by_status(found.status or 500, found.words, context=context)
    return Classified(outcome=outcome, error_class=error_class, text=found.message)


def by_status(status: int, words: str, *, context: bool) -> tuple[Outcome, ErrorClass]:
    """Rules 7 to 16: what a status other than 200 means, with the words of its body (lower case)."""
    if context and status != 429 and _CONTEXT.search(words):
        return _O.BAD_REQUEST, _E.CONTEXT_LENGTH
    if status == 401 or (status in {400, 403} and _KEY.search(words)):
        return _O.AUTH, _E.AUTH
    if status == 404 or (status == 400 and _GONE.search(words)):
        return _O.NOT_FOUND, _E.NOT_FOUND
    if status == 402 or _QUOTA.search(words):
        return _O.RATE_LIMITED, _E.QUOTA
    if status in {503, 529} or _OVERLOADED.search(words):
        return _O.PROVIDER_ERROR, _E.OVERLOADED
    if status == 429:
        return _O.RATE_LIMITED, _E.RATE_LIMITED
    if status == 403:
        return _O.AUTH, _E.PERMISSION
    if status in {408, 504}:
        return _O.PROVIDER_ERROR, _E.TIMEOUT
    if status == 502 or 520 <= status <= 527:
        return _O.PROVIDER_ERROR, _E.BAD_GATEWAY
    if status >= 500 or status < 400:
        return _O.PROVIDER_ERROR, _E.SERVER_ERROR
    return _O.BAD_REQUEST, _E.BAD_REQUEST
