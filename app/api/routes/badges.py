"""Badges for READMEs and status pages: small SVG, made here, nothing loaded from anywhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated
from xml.sax.saxutils import escape

from fastapi import APIRouter, Path
from starlette.responses import Response

from app.api.params import Reading, Served, find_target
from app.api.problems import responses
from app.storage.queries.fleet import Standing, verdicts_of
from app.units import format_duration
from app.verdict.model import Severity, State, Verdict

router = APIRouter(tags=["badges"], responses=responses(404))

GREY, GREEN, AMBER, RED = "#6b7280", "#1a7f37", "#9a6700", "#b42318"
_CHARACTER_PX = 6.6


class Shown(StrEnum):
    """What a badge shows."""

    TPS = "tps"
    TTFT = "ttft"
    EFFICIENCY = "efficiency"
    STATUS = "status"


@router.get(
    "/badges/{name:path}.svg",
    summary="A badge",
    response_class=Response,
    responses={200: {"content": {"image/svg+xml": {"schema": {"type": "string"}}}}},
)
async def badge(
    served: Served,
    session: Reading,
    name: Annotated[str, Path(min_length=1, max_length=200)],
    metric: Shown = Shown.STATUS,
) -> Response:
    """The target's current verdict as a badge; grey where nothing is known."""
    target = find_target(served.config(), name)
    said = (await verdicts_of(session, [target], now=served.clock.now())).get(name, ())
    value, colour = words(Standing(target=target, verdicts=said).worst, metric)
    labels = {Shown.TPS: "tokens/s", Shown.TTFT: "TTFT", Shown.EFFICIENCY: "of expected", Shown.STATUS: name}
    return Response(svg(labels[metric], value, colour), media_type="image/svg+xml", headers={"Cache-Control": "max-age=60"})


def words(verdict: Verdict | None, metric: Shown) -> tuple[str, str]:
    """What the badge says, and its colour."""
    if verdict is None or verdict.state is State.UNKNOWN:
        return "unknown", GREY
    colour = {Severity.NONE: GREEN, Severity.WARNING: AMBER, Severity.CRITICAL: RED}[verdict.severity]
    match metric:
        case Shown.STATUS:
            return verdict.state.replace("_", " "), colour
        case Shown.TPS:
            figure = None if verdict.observed is None else f"{verdict.observed:.3g}"
        case Shown.TTFT:
            figure = None if verdict.ttft_p50_s is None else format_duration(verdict.ttft_p50_s)
        case Shown.EFFICIENCY:
            figure = None if verdict.ratio is None else f"{verdict.ratio:.0%}"
    return ("unknown", GREY) if figure is None else (figure, colour)


def svg(label: str, value: str, colour: str) -> str:
    """The badge. Widths are estimated from the number of characters, and the text is fitted into them."""
    left, right = (round(len(text) * _CHARACTER_PX + 12) for text in (label, value))
    whole = left + right
    text = 'y="14" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" '
        f'aria-label="{_attribute(label)}: {_attribute(value)}"><title>{escape(label)}: {escape(value)}</title>'
        f'<clipPath id="r"><rect width="{whole}" height="20" rx="3"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{left}" height="20" fill="#374151"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        f'<text x="{left / 2:g}" {text} textLength="{left - 12}">{escape(label)}</text>'
        f'<text x="{left + right / 2:g}" {text} textLength="{right - 12}">{escape(value)}</text></svg>'
    )


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
