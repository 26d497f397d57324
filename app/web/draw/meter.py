"""A speed against what it should be: one bar, with the expectation and the ceiling on it."""

from __future__ import annotations

from markupsafe import Markup

from app.verdict.model import Verdict
from app.web.draw.scale import Scale, element, picture

WIDTH, HEIGHT = 160.0, 16.0


def meter(verdict: Verdict | None, *, red_below: float = 0.4, amber_below: float = 0.6) -> Markup:
    """Observed speed as a bar with its interval as a whisker; zones of warning behind, expected and ceiling as marks."""
    if verdict is None or verdict.observed is None:
        return Markup("")
    marks = [value for value in (verdict.observed, verdict.ceiling, verdict.expected) if value]
    x = Scale(low=0.0, high=max(marks) * 1.05, start=0.0, end=WIDTH)
    parts = [element("rect", class_="track", x=0, y=3, width=WIDTH, height=10, rx=2)]
    if verdict.expected:
        parts += [
            element("rect", class_="zone-warning", x=0, y=3, width=x(amber_below * verdict.expected), height=10, rx=2),
            element("rect", class_="zone-critical", x=0, y=3, width=x(red_below * verdict.expected), height=10, rx=2),
        ]
    parts.append(element("rect", class_=f"bar s-{verdict.severity}", x=0, y=5.5, width=x(verdict.observed), height=5))
    if verdict.observed_low is not None and verdict.observed_high is not None:
        low, high = x(verdict.observed_low), x(verdict.observed_high)
        parts.append(element("rect", class_="whisker", x=low, y=7.25, width=max(1.0, round(high - low, 1)), height=1.5))
    for value, name in ((verdict.expected, "expected"), (verdict.ceiling, "ceiling")):
        if value:
            parts.append(element("rect", class_=f"mark-{name}", x=x(value) - 1, y=0, width=2, height=HEIGHT))
    return picture(parts, width=WIDTH, height=HEIGHT, title=_words(verdict), class_="meter")


def _words(verdict: Verdict) -> str:
    said = [f"observed {verdict.observed:.3g}"]
    said += [
        f"{name} {value:.3g}"
        for name, value in (("expected", verdict.expected), ("ceiling", verdict.ceiling))
        if value is not None
    ]
    return ", ".join(said) + " tokens per second"
