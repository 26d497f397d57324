"""No byte of the key stays in a recording: providers send keys back, and evidence of failed runs is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import quote

from app.measurement.recording import Recording

REDACTED = "[redacted]"
SHORTEST = 8
"""Shorter ones (`x`, `EMPTY`, `ollama`) are no secrets, and stand in ordinary text."""


def spellings(secret: str) -> tuple[str, ...]:
    """How a secret may stand in a text: as it is, URL-encoded, and escaped as in JSON; the longest first."""
    if len(secret) < SHORTEST:
        return ()
    found = {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], json.dumps(secret)[1:-1].replace("/", "\\/")}
    return tuple(sorted(found, key=len, reverse=True))


def veil(recording: Recording, secret: str) -> None:
    """Put stars where the secret stood, as many as it had bytes: what arrived when stays true."""
    body = recording.tape.body
    for spelling in spellings(secret):
        body = body.replace(spelling.encode(), b"*" * len(spelling))
    recording.tape.body = body
    recording.headers = tuple((name, without(value, secret)) for name, value in recording.headers)
    if recording.failure is not None:
        recording.failure = replace(recording.failure, text=without(recording.failure.text, secret))


def without(text: str, secret: str) -> str:
    """The text with a word where the secret, or the stars for it, stood."""
    for spelling in spellings(secret):
        text = text.replace(spelling, REDACTED).replace("*" * len(spelling), REDACTED)
    return text
