"""Waits and rate limits out of response headers, in all the formats that providers use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SPAN = re.compile(
    r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
_SECONDS = (86400.0, 3600.0, 60.0, 1.0, 0.001)
EPOCH_MS = 1e11
EPOCH_S = 1e9

Headers = Sequence[tuple[str, str]]


def span_s(text: str, *, now: datetime) -> float | None:
    """Seconds of `2m59.56s`, `120ms`, `3563.6`, an epoch in seconds or milliseconds, or an HTTP date; None if it is none."""
    value = text.strip()
    try:
        number = float(value)
    except ValueError:
        return _written(value, now=now)
    if not 0 <= number < 1e15:
        return None
    if number >= EPOCH_MS:
        return max(0.0, number / 1000 - now.timestamp())
    if number >= EPOCH_S:
        return max(0.0, number - now.timestamp())
    return number


def _written(value: str, *, now: datetime) -> float | None:
    found = _SPAN.fullmatch(value)
    if value and found and any(found.groups()):
        return sum(float(part) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True) if part)
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())


def retry_after_s(headers: Headers, *, now: datetime) -> float | None:
    """How long to wait, by `retry-after-ms` (milliseconds) or `retry-after`; the longer one where both are sent."""
    waits = []
    for name, value in headers:
        if name == "retry-after-ms" and (milliseconds := number(value)) is not None:
            waits.append(max(0.0, milliseconds / 1000))
        elif name == "retry-after" and (wait := span_s(value, now=now)) is not None:
            waits.append(wait)
    return max(waits, default=None)


def rate_limits(headers: Headers, *, now: datetime) -> dict[str, float]:
    """Rate-limit headers as numbers, names as sent without `x-`; resets in seconds from now."""
    found: dict[str, float] = {}
    for name, value in headers:
        if "ratelimit" not in name:
            continue
        amount = span_s(value, now=now) if "reset" in name else number(value)
        if amount is not None:
            found[name.removeprefix("x-")] = amount
    return found


def number(value: str) -> float | None:
    """A header's value as a finite number; None if it is none."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if abs(found) < MOST else None  # not a number compares as False


MOST = 1e19
"""xAI sends 2^63 - 1 for what has no limit; more is no number of anything."""
