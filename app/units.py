"""Units at the borders: durations as people write them, nanoseconds inside, seconds outside."""

from __future__ import annotations

import re

NS_PER_S = 1_000_000_000
GB = 1_000_000_000
"""Bytes in a gigabyte: 1e9, as vendors count bandwidth."""

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w|y)")


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `500ms`, `60s`, `5m`, `2h`, `30d`, `2y` or `1h30m`.

    Raises:
        ValueError: with a sentence that says how durations are written.
    """
    stripped = text.strip()
    parts = _DURATION.findall(stripped)
    if not parts or "".join(number + unit for number, unit in parts) != stripped:
        raise ValueError(f"{text!r} is not a duration; write it like 500ms, 60s, 5m, 2h or 30d")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def format_duration(seconds: float) -> str:
    """A duration as a person reads it: 3 significant digits, the unit that fits (`812 µs`, `203 ms`, `1.25 s`, `5 min`)."""
    magnitude = abs(seconds)
    for limit, factor, unit in ((0.001, 1e6, "µs"), (1.0, 1e3, "ms"), (120.0, 1.0, "s"), (7200.0, 1 / 60, "min")):
        if magnitude < limit:
            return f"{seconds * factor:.3g} {unit}"
    if magnitude < 172800.0:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / 86400:.3g} d"


def seconds(nanoseconds: int | None) -> float | None:
    """Seconds of a span in nanoseconds; None stays None."""
    return None if nanoseconds is None else nanoseconds / NS_PER_S
