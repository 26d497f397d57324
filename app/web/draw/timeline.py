"""One run as it went: its phases as one bar, and every output read as a step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from markupsafe import Markup

from app.measurement.model import Measurement
from app.units import format_duration
from app.web.draw.chart import BOTTOM, LEFT, RIGHT, TOP, WIDE
from app.web.draw.scale import Scale, element, picture, ticks

HEIGHT = 240.0
MOST_DOTS = 1500
PHASES = ("dns", "connect", "tls", "send", "wait", "first token", "output")


def stretches(m: Measurement) -> tuple[tuple[str, float], ...]:
    """(phase, seconds) of a run, in order; those that did not happen are left out."""
    p = m.phases
    known = [("dns", p.dns_s), ("connect", p.connect_s), ("tls", p.tls_s), ("send", p.send_s), ("wait", p.wait_s)]
    if m.ttft_s is not None and p.wait_s is not None:
        known.append(("first token", max(0.0, m.ttft_s - p.wait_s)))
    if m.ttft_s is not None and m.e2e_s is not None:
        known.append(("output", max(0.0, m.e2e_s - m.ttft_s)))
    return tuple((name, seconds) for name, seconds in known if seconds is not None)


def phases(parts: Sequence[tuple[str, float]], *, title: str = "Phases of the run") -> Markup:
    """The phases as one bar, each as long as it took."""
    whole = sum(seconds for _, seconds in parts)
    if whole <= 0:
        return Markup("")
    x = Scale(low=0.0, high=whole, start=0.0, end=WIDE)
    bars, at = [], 0.0
    for name, seconds in parts:
        left, right = x(at), x(at + seconds)
        at += seconds
        tip = element("title", f"{name} {format_duration(seconds)}")
        style = f"phase phase-{name.replace(' ', '-')}"
        bars.append(element("rect", tip, class_=style, x=left, y=0, width=max(0.6, round(right - left, 1)), height=22))
    said = ", ".join(f"{name} {format_duration(seconds)}" for name, seconds in parts)
    return picture(bars, width=WIDE, height=22, title=f"{title}: {said}", class_="phases")


def timeline(m: Measurement, *, stamps_s: Sequence[float], tokens: Sequence[float]) -> Markup:
    """Tokens that had arrived by each moment, from the request's last byte on; stalls are shaded."""
    if not stamps_s:
        return Markup("")
    total = list(accumulate(tokens)) or [0.0]
    end = max(stamps_s[-1], m.e2e_s or 0.0) * 1.02 or 1.0
    x = Scale(low=0.0, high=end, start=LEFT, end=WIDE - RIGHT)
    y = Scale(low=0.0, high=max(total[-1], 1.0) * 1.05, start=HEIGHT - BOTTOM, end=TOP)
    parts = [*_axes(x, y, end=end, top=max(total[-1], 1.0) * 1.05), *_stalls(x, stamps_s)]
    steps, before = [f"{x(0):g},{y(0):g}"], 0.0
    for at, count in zip(stamps_s, total, strict=True):
        steps += [f"{x(at):g},{y(before):g}", f"{x(at):g},{y(count):g}"]
        before = count
    parts.append(element("polyline", class_="line line-1", points=" ".join(steps)))
    every = max(1, len(stamps_s) // MOST_DOTS)
    dots = list(zip(stamps_s, total, strict=True))[::every]
    parts += [element("circle", class_="dot line-1", cx=x(at), cy=y(count), r=1.8) for at, count in dots]
    if m.ttft_s is not None:
        parts.append(element("line", class_="level-expected", x1=x(m.ttft_s), x2=x(m.ttft_s), y1=TOP, y2=HEIGHT - BOTTOM))
        label = f"first token {format_duration(m.ttft_s)}"
        parts.append(element("text", label, class_="level", x=x(m.ttft_s) + 4, y=TOP + 9))
    title = f"Token timeline: {total[-1]:g} tokens in {len(stamps_s)} reads over {format_duration(stamps_s[-1])}"
    return picture(parts, width=WIDE, height=HEIGHT, title=title, class_="chart")


def _stalls(x: Scale, stamps_s: Sequence[float]) -> list[Markup]:
    """Gaps over max(1 s, 20 x median), as `measurement` counts them."""
    gaps = sorted(later - earlier for earlier, later in pairwise(stamps_s))
    limit = max(1.0, 20 * gaps[len(gaps) // 2]) if gaps else 0.0
    return [
        element("rect", class_="stall", x=x(a), y=TOP, width=round(x(b) - x(a), 1), height=HEIGHT - BOTTOM - TOP)
        for a, b in pairwise(stamps_s)
        if b - a > limit
    ]


def tick(seconds: float) -> str:
    """A duration on an axis."""
    return format_duration(seconds) if seconds else "0"


def _axes(x: Scale, y: Scale, *, end: float, top: float) -> list[Markup]:
    parts = []
    for value in ticks(0.0, top):
        parts.append(element("line", class_="grid", x1=LEFT, x2=WIDE - RIGHT, y1=y(value), y2=y(value)))
        parts.append(element("text", f"{value:g}", class_="tick", x=LEFT - 5, y=y(value) + 3.5, text_anchor="end"))
    below = {"class_": "tick", "y": HEIGHT - 6, "text_anchor": "middle"}
    return parts + [element("text", tick(value), x=x(value), **below) for value in ticks(0.0, end, about=8)]
