"""The complaint of a provider: code, type and message out of every shape of error body, free of secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape

import msgspec

TEXT_LIMIT = 300
LABEL_LIMIT = 200
PAGE_LIMIT = 16_384
"""Bytes of a page or text in which a complaint is looked for."""
ECHO = 24
"""So many characters in a row that are also in the prompt are from it."""
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^<>]*>", re.DOTALL | re.IGNORECASE)
SURE = re.compile(
    r"\b(?:sk|gsk|csk|xai|pk|rk|fw|tgp|nvapi|hf|bw|whsec)[-_][A-Za-z0-9_\-]{12,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_.-]+"
    r"|\bAKIA[A-Z0-9]{12,}"
)
"""Keys by their makers' marks: no text looks like that by chance."""
SECRETS = re.compile(
    r"(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,}"
    r"|\b(?:sk|gsk|csk|xai|pk|rk|fw|tgp|nvapi|hf|bw|whsec|key|api)[-_][A-Za-z0-9_\-]{8,}"
    r"|\b[A-Fa-f0-9]{32,}\b"
    r"|\b(?=[A-Za-z0-9+/_-]*\d)(?=[A-Za-z0-9+/_-]*[A-Za-z])[A-Za-z0-9+/_-]{40,}={0,2}"
    rf"|{SURE.pattern}"
)
"""Everything that may be one, for the short texts of errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What an error says. `status`: the error's own, where it has one; `words`: everything to recognise it by."""

    message: str
    words: str
    status: int | None = None


def redact(text: str) -> str:
    """Text without what looks like a secret."""
    return SECRETS.sub("[redacted]", text)


def conceal(text: str, prompt: str) -> str:
    """Text without what it repeats of the prompt: validation errors like to send the whole input back."""
    inside = [False] * len(text)
    for at in range(len(text) - ECHO + 1):
        if text[at : at + ECHO] in prompt:
            inside[at : at + ECHO] = [True] * ECHO
    kept = "".join("\0" if hidden else c for c, hidden in zip(text, inside, strict=True))
    return re.sub("\0+", "[prompt]", kept)


def clean(text: str) -> str:
    """One line for people: no secrets, no control characters, at most `TEXT_LIMIT` characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in redact(text)).split())
    return flat if len(flat) <= TEXT_LIMIT else flat[: TEXT_LIMIT - 1] + "…"


def label(text: str | None) -> str | None:
    """A provider's word (a model's name, a finish reason) as one that can be stored: printable, and not without end."""
    return None if text is None else "".join(c if c.isprintable() else "�" for c in text[:LABEL_LIMIT])


def complaint_of_body(body: bytes) -> Complaint:
    """The complaint of a plain body: JSON of any shape, HTML, or text."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        text = unescape(_TAGS.sub(" ", body[:PAGE_LIMIT].decode("utf-8", "replace")))
        return Complaint(message=clean(text), words=text.lower())
    if isinstance(found, Mapping) and found.get("error"):
        return complaint(found["error"], beside=found)
    return complaint(found)


def complaint(error: object, *, beside: Mapping[str, object] | None = None) -> Complaint:
    """The complaint of an error object; `beside` is the object that holds it, whose code counts too (xAI, OpenRouter)."""
    if isinstance(error, str):
        held = beside or {}
        message = str(held.get("message") or error)
        words = " ".join(str(v) for v in (error, held.get("code"), held.get("message"), held.get("type")) if v is not None)
        return Complaint(message=clean(message), words=words.lower(), status=_status(held))
    if not isinstance(error, Mapping):
        return Complaint(message=clean(str(error)), words=str(error).lower())
    message = _message(error)
    parts = [message, *(error.get(name) for name in ("code", "type", "param", "reason", "error_code", "status"))]
    metadata = error.get("metadata")
    if isinstance(metadata, Mapping):
        parts.append(metadata.get("raw"))
    words = " ".join(str(part) for part in parts if part is not None).lower()
    return Complaint(message=clean(message), words=words, status=_status(error))


def _message(error: Mapping[str, object]) -> str:
    for name in ("message", "error", "detail", "reason", "title", "error_description"):
        value = error.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, Mapping):
            return _message(value)
        if isinstance(value, list) and value:
            first = value[0]
            return str(first.get("msg") or first) if isinstance(first, Mapping) else str(first)
    return str(error.get("code") or error.get("type") or "an error without a message")


def _status(error: Mapping[str, object]) -> int | None:
    for name in ("status_code", "status", "code", "http_status"):
        value = error.get(name)
        if isinstance(value, str) and value.isdigit():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return value
    kind = f"{error.get('type') or ''} {error.get('code') or ''}".lower()
    for word, status in (
        ("rate_limit", 429),
        ("too_many_requests", 429),
        ("authentication", 401),
        ("permission", 403),
        ("not_found", 404),
        ("invalid_request", 400),
        ("bad_request", 400),
        ("badrequest", 400),
    ):
        if word in kind:
            return status
    return None
