"""Two figures as SVG, drawn by hand: no library, the same bytes on every machine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.expectation.constants import AMBER, RED, TUNED
from benchmarks.calibration.checks import Evidence
from benchmarks.calibration.fits import quantile
from benchmarks.calibration.rows import Judged

WIDTH, HEIGHT = 760, 560
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 56, 54
COLORS = {
    "dense, one device": "#2563eb",
    "dense, tensor parallel": "#0891b2",
    "MoE, one device": "#7c3aed",
    "MoE, tensor parallel": "#db2777",
    "speculation declared": "#f59e0b",
    "impossible as declared": "#dc2626",
}
INK, GREY, RULE = "#111827", "#6b7280", "#e5e7eb"


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis from `low` to `high` over pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)


def measured_against_expected(evidence: Evidence) -> str:
    """Every single-stream row; lines where verdicts change."""
    x = Axis(2, 2000, LEFT, WIDTH - RIGHT)
    y = Axis(2, 2000, HEIGHT - BOTTOM, TOP)
    parts = [*_frame(f"Measured against expected decode speed: {len(evidence.healthy)} healthy rows and the rest")]
    for tick in (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000):
        parts += [
            _line(x(tick), TOP, x(tick), HEIGHT - BOTTOM, RULE),
            _line(LEFT, y(tick), WIDTH - RIGHT, y(tick), RULE),
            _text(x(tick), HEIGHT - BOTTOM + 18, f"{tick}", anchor="middle"),
            _text(LEFT - 8, y(tick) + 4, f"{tick}", anchor="end"),
        ]
    for ratio, name, dash in ((1.0, "R = 1", ""), (TUNED, "1.25", "2 3"), (AMBER, "0.6", "6 3"), (RED, "0.4", "2 3")):
        from_x, to_x = max(2.0, 2.0 / ratio), min(2000.0, 2000.0 / ratio)
        parts.append(_line(x(from_x), y(from_x * ratio), x(to_x), y(to_x * ratio), GREY, dash=dash))
        at = min(1100.0, to_x * 0.9)
        lift, anchor = (-6, "end") if ratio > 1 else (12, "start")
        parts.append(_text(x(at), y(at * ratio) + lift, name, anchor=anchor, size=11))
    parts += [_mark(x(_clip(1 / (row.ratio / row.measured))), y(_clip(row.measured)), kind) for kind, row in _kinds(evidence)]
    parts += [
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "expected, tokens/s of one stream (default constants)", anchor="middle"),
        f'<g transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)">'
        + _text(0, 0, "measured, tokens/s", anchor="middle")
        + "</g>",
    ]
    for index, (kind, color) in enumerate(COLORS.items()):
        parts.append(_mark(LEFT + 14, TOP + 14 + 17 * index, kind))
        parts.append(_text(LEFT + 24, TOP + 18 + 17 * index, kind, color=color, size=11))
    return _svg(parts, WIDTH, HEIGHT)


def ratio_by_class(groups: Sequence[tuple[str, Sequence[Judged]]]) -> str:
    """R of each class: every row as a dot, a box from p25 to p75, whiskers from p5 to p95."""
    left, row_height = 210, 30
    height = TOP + row_height * len(groups) + BOTTOM
    x = Axis(0.25, 4, left, WIDTH - RIGHT)
    base = height - BOTTOM
    parts = [*_frame("R = measured / expected by class", height)]
    parts.append(_box(x(0.25), TOP, x(RED), base, "#fee2e2"))
    parts.append(_box(x(RED), TOP, x(AMBER), base, "#fef3c7"))
    parts.append(_box(x(TUNED), TOP, x(4), base, "#eff6ff"))
    for tick in (0.25, RED, AMBER, 1, TUNED, 2, 4):
        parts.append(_line(x(tick), TOP, x(tick), base, GREY if tick == 1 else RULE))
        parts.append(_text(x(tick), base + 18, f"{tick:g}", anchor="middle"))
    for index, (name, rows) in enumerate(groups):
        middle = TOP + row_height * (index + 0.5)
        parts.append(_text(left - 10, middle + 4, f"{name} ({len(rows)})", anchor="end", size=12))
        parts += _spread(x, middle, [row.ratio for row in rows])
    parts.append(
        _text(
            (left + WIDTH - RIGHT) / 2, height - 14, "R, logarithmic; dots: rows, box: p25-p75, line: p5-p95", anchor="middle"
        )
    )
    return _svg(parts, WIDTH, height)


def _spread(x: Axis, middle: float, ratios: Sequence[float]) -> Iterator[str]:
    at = [x(min(3.9, max(0.26, quantile(ratios, p)))) for p in (0.05, 0.25, 0.5, 0.75, 0.95)]
    yield _line(at[0], middle, at[4], middle, INK)
    yield _box(at[1], middle - 7, at[3], middle + 7, "#bfdbfe", stroke=INK)
    for index, ratio in enumerate(sorted(ratios)):
        lift = ((index * 7) % 5 - 2) * 2.2
        place = x(min(3.9, max(0.26, ratio)))
        yield f'<circle cx="{place}" cy="{middle + lift:.1f}" r="1.8" fill="#1d4ed8" fill-opacity="0.5"/>'
    yield _line(at[2], middle - 7, at[2], middle + 7, INK)


def _kinds(evidence: Evidence) -> Iterator[tuple[str, Judged]]:
    impossible = {row.line for row in evidence.impossible}
    for row in evidence.bytes_rule:
        if row.line in impossible:
            yield "impossible as declared", row
        elif row.raw["speculative"] == "yes":
            yield "speculation declared", row
    yield from ((row.shape, row) for row in evidence.healthy)


def _clip(value: float) -> float:
    return min(1990.0, max(2.01, value))


def _mark(x: float, y: float, kind: str) -> str:
    color = COLORS[kind]
    if kind in {"speculation declared", "impossible as declared"}:
        points = f"{x},{y - 5} {x + 5:.1f},{y + 4} {x - 5:.1f},{y + 4}"
        return f'<polygon points="{points}" fill="none" stroke="{color}" stroke-width="1.6"/>'
    return f'<circle cx="{x}" cy="{y}" r="3" fill="{color}" fill-opacity="0.55"/>'


def _frame(title: str, height: int = HEIGHT) -> Iterator[str]:
    yield f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>'
    yield _text(20, 28, title, size=15, weight="600", color=INK)


def _line(x1: float, y1: float, x2: float, y2: float, color: str, *, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}"{dashed}/>'


def _box(x1: float, y1: float, x2: float, y2: float, color: str, *, stroke: str = "none") -> str:
    return f'<rect x="{x1}" y="{y1:.1f}" width="{x2 - x1:.1f}" height="{y2 - y1:.1f}" fill="{color}" stroke="{stroke}"/>'


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "400", color: str = GREY
) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    style = f'font-size="{size}" font-weight="{weight}" fill="{color}" text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y:.1f}" {style}>{escaped}</text>'


def _svg(parts: Iterable[str], width: int, height: int) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" role="img">'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"
