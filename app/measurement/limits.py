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
        if name == "retry-after-ms":
            try:
                waits.append(max(0.0, float(value) / 1000))
            except ValueError:
                continue
        elif name == "retry-after" and (wait := span_s(value, now=now)) is not None:
            waits.append(wait)
    return max(waits, default=None)


def rate_limits(headers: Headers, *, now: datetime) -> dict[str, float]:
    """Rate-limit headers as numbers, names as sent without `x-`; resets in seconds from now."""
    found: dict[str, float] = {}
    for name, value in headers:
        if "ratelimit" not in name:
            continue
        number = span_s(value, now=now) if "reset" in name else _number(value)
        if number is not None:
            found[name.removeprefix("x-")] = number
    return found


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if number == number and abs(number) < 1e18 else None  # noqa: PLR0124 - not a number
