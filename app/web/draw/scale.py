"""From figures to places on a picture, with ticks at round numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, log10

from markupsafe import Markup, escape


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maps [`low`, `high`] to [`start`, `end`] pixels; what lies outside is put on the border."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a value, to a tenth of a pixel."""
        width = self.high - self.low
        share = 0.0 if width <= 0 else (min(max(value, self.low), self.high) - self.low) / width
        return round(self.start + share * (self.end - self.start), 1)


def ticks(low: float, high: float, *, about: int = 4) -> tuple[float, ...]:
    """Round numbers (1, 2 or 5 times a power of ten apart) in [low, high]."""
    if not high - low > max(1e-300, 1e-12 * max(abs(low), abs(high))):  # steps that floats can take
        return (low,)
    rough = (high - low) / max(1, about)
    if rough < 1e-300:  # below that, powers of ten lose their digits
        return (low,)
    power = 10 ** floor(log10(rough))
    step = next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)
    first = -(-low // step)
    found, at = [], first * step
    while at <= high + step * 1e-9:
        found.append(round(at, 12))
        at += step
    return tuple(found)


def attributes(**values: object) -> str:
    """Attributes as text, escaped; `class_` and `text_anchor` become `class` and `text-anchor`, None is left out."""
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"' for name, value in values.items() if value is not None
    )


def element(name: str, inner: str | Markup = "", **values: object) -> Markup:
    """One SVG element. `inner` text is escaped unless it is markup."""
    content = escape(inner)
    return Markup(f"<{name}{attributes(**values)}>{content}</{name}>")  # noqa: S704 - every part is escaped above


def group(parts: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("").join(parts)


def picture(parts: Iterable[Markup], *, width: float, height: float, title: str, class_: str) -> Markup:
    """A whole picture that scales with its place and tells its title to those who cannot see it."""
    return element(
        "svg",
        group([element("title", title), *parts]),
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=title,
        class_=class_,
        preserveAspectRatio="none" if class_ in {"meter", "phases"} else None,
    )
