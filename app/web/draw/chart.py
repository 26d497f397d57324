"""Lines over time, for pages without a script and under the interactive chart of those that have one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from app.storage.queries.series import Point
from app.web.draw.scale import Scale, element, picture, ticks

WIDTH, WIDE, HEIGHT = 600.0, 1200.0, 200.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 8.0, 8.0, 22.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A named series; `style` is a class of the style sheet. Points without a value interrupt the line."""

    name: str
    points: Sequence[Point]
    style: str = "line-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A horizontal line, such as the ceiling."""

    name: str
    value: float
    style: str


def chart(
    lines: Sequence[Line],
    *,
    levels: Sequence[Level] = (),
    since: datetime,
    until: datetime,
    unit: str,
    title: str,
    width: float = WIDTH,
) -> Markup:
    """The picture; an empty one says that there is nothing to show."""
    values = [p.value for line in lines for p in line.points if p.value is not None]
    if not values:
        middle = element(
            "text", "no reliable samples in this span", x=width / 2, y=HEIGHT / 2, class_="empty", text_anchor="middle"
        )
        return picture([middle], width=width, height=HEIGHT, title=f"{title}: no samples", class_="chart")
    top = max([*values, *(level.value for level in levels if level.value <= 6 * max(values))]) * 1.08
    y = Scale(low=0.0, high=top, start=HEIGHT - BOTTOM, end=TOP)
    x = Scale(low=since.timestamp(), high=until.timestamp(), start=LEFT, end=width - RIGHT)
    parts = [*_grid(x, y, top=top, unit=unit, since=since, until=until)]
    for level in levels:
        if level.value <= top:
            parts.append(element("line", class_=level.style, x1=LEFT, x2=x.end, y1=y(level.value), y2=y(level.value)))
            parts.append(element("text", level.name, class_="level", x=x.end - 2, y=y(level.value) - 3, text_anchor="end"))
    for line in lines:
        parts += [element("polyline", class_=f"line {line.style}", points=run) for run in _runs(line, x, y)]
        parts += [
            element("circle", class_=f"dot {line.style}", cx=x(p.at.timestamp()), cy=y(p.value), r=1.6)
            for p in line.points
            if p.value is not None
        ]
    return picture(parts, width=width, height=HEIGHT, title=title, class_="chart")


def _runs(line: Line, x: Scale, y: Scale) -> list[str]:
    """Unbroken stretches of a line, as points."""
    runs: list[list[str]] = [[]]
    for point in line.points:
        if point.value is None:
            runs.append([])
        else:
            runs[-1].append(f"{x(point.at.timestamp()):g},{y(point.value):g}")
    return [" ".join(run) for run in runs if len(run) > 1]


def _grid(x: Scale, y: Scale, *, top: float, unit: str, since: datetime, until: datetime) -> list[Markup]:
    parts = []
    for value in ticks(0.0, top):
        parts.append(element("line", class_="grid", x1=LEFT, x2=x.end, y1=y(value), y2=y(value)))
        parts.append(element("text", short(value, unit), class_="tick", x=LEFT - 5, y=y(value) + 3.5, text_anchor="end"))
    span_s = (until - since).total_seconds()
    form = "%H:%M" if span_s <= 2 * 86400 else "%d %b"
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        at = since.timestamp() + share * span_s
        anchor = "start" if share == 0.0 else "end" if share == 1.0 else "middle"
        label = datetime.fromtimestamp(at, UTC).strftime(form)
        parts.append(element("text", label, class_="tick", x=x(at), y=HEIGHT - 6, text_anchor=anchor))
    return parts


def short(value: float, unit: str) -> str:
    """A tick in few characters."""
    if unit == "s" and 0 < value < 1:
        return f"{value * 1000:g} ms"
    return f"{value:g} s" if unit == "s" and value else f"{value:g}"
