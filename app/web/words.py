"""Figures and states as people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from app.units import format_duration
from app.verdict.model import Interval

NOTHING = "–"
STATES = {
    "ok": "ok",
    "below_expectation": "below expectation",
    "slow_first_token": "slow first token",
    "regressed": "regressed",
    "above_ceiling": "above ceiling",
    "unavailable": "unavailable",
    "unknown": "unknown",
}
GLYPHS = {"none": "●", "warning": "▲", "critical": "■"}
"""A shape for each severity: colour alone tells nothing to who cannot see it."""


def number(value: float | None) -> str:
    """Three significant digits; whole from 100 on, thousands apart."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}".replace(",", "\u202f") if abs(value) >= 100 else f"{value:.3g}"


def percent(value: float | None) -> str:
    """A share as a percentage, with as many digits as mean something: 99.95 % is not 100 %."""
    if value is None:
        return NOTHING
    shown = value * 100
    if 99 < shown < 100:
        return f"{min(shown, 99.99):.2f}\u202f%".replace("0\u202f%", "\u202f%")
    return f"{shown:.0f}\u202f%" if shown >= 10 or shown == 0 else f"{shown:.2g}\u202f%"


def ratio(value: float | None) -> str:
    """A measured share, which has three digits at most: 100 % of expected is neither more nor less exact than 23 %."""
    if value is None:
        return NOTHING
    shown = value * 100
    return f"{shown:.0f}\u202f%" if shown >= 10 or shown == 0 else f"{shown:.2g}\u202f%"


def span(seconds: float | None) -> str:
    """A duration."""
    return NOTHING if seconds is None else format_duration(seconds).replace(" ", "\u202f")


def clock(at: datetime | None) -> str:
    """An instant in UTC, to the second."""
    return NOTHING if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def since(at: datetime | None, now: datetime) -> str:
    """How long ago."""
    if at is None:
        return "never"
    seconds = (now - at).total_seconds()
    if seconds < 1:
        return "just now"
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (129600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f}\u202f{unit} ago"
    return f"{seconds / 86400:.0f}\u202fd ago"


def interval(value: Interval | None, kind: str = "number") -> str:
    """The ends of a confidence interval."""
    if value is None or value.low is None or value.high is None:
        return ""
    show = {"number": number, "span": span, "percent": percent}[kind]
    return f"{show(value.low)} to {show(value.high)}"


def state_words(state: str) -> str:
    """A state or a rule in words."""
    return STATES.get(state, state.replace("_", " "))


def glyph(severity: str) -> str:
    """The shape of a severity."""
    return GLYPHS.get(severity, "●")


def size(value: float | None) -> str:
    """Bytes."""
    if value is None:
        return NOTHING
    return f"{value / 1e9:.3g}\u202fGB" if abs(value) >= 1e8 else f"{value / 1e6:.3g}\u202fMB"


def count(n: int, word: str) -> str:
    """A number of things."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "number": number,
    "percent": percent,
    "ratio": ratio,
    "span": span,
    "clock": clock,
    "since": since,
    "interval": interval,
    "state": state_words,
    "glyph": glyph,
    "bytes": size,
    "count": count,
}
