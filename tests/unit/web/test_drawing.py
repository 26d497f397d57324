"""Pictures hold every figure they were given, in places that follow from it, and break on nothing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.measurement.model import ErrorClass, Measurement, Outcome, Phases
from app.storage.queries.fleet import Standing
from app.storage.queries.series import Point
from app.storage.queries.summaries import Summary
from app.verdict.model import Interval, Severity, State, Verdict
from app.web.draw.chart import Level, Line, chart, short
from app.web.draw.meter import meter
from app.web.draw.scale import Scale, element, ticks
from app.web.draw.timeline import phases, stretches, timeline
from app.web.pages.target import fitting
from app.web.words import count, glyph, interval, number, percent, ratio, since, size, span, state_words
from tests.support.runs import target

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FINITE = st.floats(min_value=0, max_value=1e6, allow_nan=False)


def a_verdict(**figures: float | None) -> Verdict:
    return Verdict(target="t", location="l", state=State.OK, severity=Severity.NONE, since=NOW, checked_at=NOW, **figures)  # type: ignore[arg-type]


@given(low=FINITE, width=st.floats(min_value=1e-6, max_value=1e6), about=st.integers(2, 9))
def test_ticks_are_round_lie_inside_and_are_not_too_many(low: float, width: float, about: int) -> None:
    found = ticks(low, low + width, about=about)
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in found)
    assert len(found) <= about + 2


def test_a_scale_keeps_what_lies_outside_on_its_border() -> None:
    x = Scale(low=0.0, high=10.0, start=100.0, end=200.0)
    assert [x(value) for value in (-5, 0, 5, 10, 50)] == [100.0, 100.0, 150.0, 200.0, 200.0]
    assert Scale(low=1.0, high=1.0, start=0.0, end=9.0)(1.0) == 0.0


def test_text_and_attributes_are_escaped() -> None:
    assert element("text", "<b>&", x='"') == '<text x="&#34;">&lt;b&gt;&amp;</text>'


@given(observed=FINITE, expected=st.none() | FINITE, ceiling=st.none() | FINITE)
def test_a_meter_is_a_picture_whatever_the_figures(observed: float, expected: float | None, ceiling: float | None) -> None:
    made = meter(a_verdict(observed=observed or 1.0, expected=expected, ceiling=ceiling, observed_low=0.5, observed_high=2.0))
    root = ET.fromstring(made)
    assert root.attrib["role"] == "img"
    assert "observed" in root.attrib["aria-label"]
    assert all(0 <= float(rect.attrib["width"]) <= 160 for rect in root.iter("rect"))


def test_without_an_observation_there_is_no_meter() -> None:
    assert meter(None) == meter(a_verdict()) == ""


@given(st.lists(st.none() | FINITE, max_size=30))
def test_a_chart_has_a_dot_for_each_value_and_a_gap_for_each_missing_one(values: list[float | None]) -> None:
    points = [Point(at=NOW + timedelta(minutes=i), value=value, n=5) for i, value in enumerate(values)]
    made = chart(
        [Line(name="a", points=points)], levels=[Level(name="ceiling", value=3.0, style="level-ceiling")], since=NOW,
        until=NOW + timedelta(hours=1), unit="s", title="t",
    )  # fmt: skip
    root = ET.fromstring(made)
    assert len(list(root.iter("circle"))) == sum(value is not None for value in values)
    drawn = sum(len(line.attrib["points"].split()) for line in root.iter("polyline"))
    assert drawn <= sum(value is not None for value in values)


def test_a_ceiling_far_above_does_not_flatten_what_was_measured() -> None:
    points = [Point(at=NOW, value=1.0, n=5)]
    made = chart(
        [Line(name="a", points=points)], levels=[Level(name="ceiling", value=100.0, style="level-ceiling")], since=NOW,
        until=NOW + timedelta(hours=1), unit="", title="t",
    )  # fmt: skip
    assert "level-ceiling" not in made


def measured(**changes: object) -> Measurement:
    known = {"outcome": Outcome.OK, "error_class": ErrorClass.NONE, "ttft_s": 0.3, "e2e_s": 1.3}
    return Measurement(**{**known, **changes})  # type: ignore[arg-type]


def test_the_stretches_of_a_run_sum_to_its_end() -> None:
    parts = stretches(measured(phases=Phases(connect_s=0.1, send_s=0.0, wait_s=0.2)))
    assert [name for name, _ in parts] == ["connect", "send", "wait", "first token", "output"]
    assert sum(seconds for name, seconds in parts if name not in {"connect", "send"}) == pytest.approx(1.3)
    assert phases(()) == ""
    assert phases(parts).count("<rect") == 5


def test_a_timeline_steps_at_each_read_and_shades_a_stall() -> None:
    made = timeline(measured(), stamps_s=(0.3, 0.31, 0.32, 3.0), tokens=(1.0, 1.0, 1.0, 1.0))
    root = ET.fromstring(made)
    assert len(list(root.iter("circle"))) == 4
    assert [rect.attrib["class"] for rect in root.iter("rect")] == ["stall"]
    assert timeline(measured(), stamps_s=(), tokens=()) == ""


def test_figures_read_as_people_write_them() -> None:
    assert [number(v) for v in (None, 1.234, 99.96, 1234.5)] == ["–", "1.23", "100", "1\u202f234"]
    assert [percent(v) for v in (None, 0.0, 0.2, 0.05, 0.9995, 0.999999, 1.0)] == [
        "–", "0\u202f%", "20\u202f%", "5\u202f%", "99.95\u202f%", "99.99\u202f%", "100\u202f%",
    ]  # fmt: skip
    assert [ratio(v) for v in (None, 0.0, 0.05, 0.2349, 0.9985, 1.664)] == [
        "–", "0\u202f%", "5\u202f%", "23\u202f%", "100\u202f%", "166\u202f%",
    ]  # fmt: skip
    assert [span(v) for v in (None, 0.2)] == ["–", "200\u202fms"]
    assert since(None, NOW) == "never"
    assert [since(NOW - timedelta(seconds=s), NOW) for s in (0, 30, 600, 7200, 200000)] == [
        "just now", "30\u202fs ago", "10\u202fmin ago", "2\u202fh ago", "2\u202fd ago",
    ]  # fmt: skip
    assert interval(Interval(value=2, low=1.0, high=3.0, n=9)) == "1 to 3"
    assert interval(None) == interval(Interval(value=2, low=None, high=None, n=5)) == ""
    assert [size(v) for v in (None, 5e6, 5e9)] == ["–", "5\u202fMB", "5\u202fGB"]
    assert (count(1, "reason"), count(2, "reason")) == ("1 reason", "2 reasons")
    assert (state_words("slow_first_token"), state_words("own_rule")) == ("slow first token", "own rule")
    assert {glyph(severity) for severity in ("none", "warning", "critical")} == {"●", "▲", "■"}
    assert [short(v, "s") for v in (0.0, 0.25, 2.0)] == ["0", "250 ms", "2 s"]


def test_a_page_begins_with_a_span_that_what_was_seen_fills() -> None:
    def seen(runs: int, every_s: float) -> Standing:
        return Standing(target=replace(target(), every_s=every_s), verdicts=(), summary=Summary(target="t", runs=runs))

    assert fitting([seen(10, 60.0)]) == "1h"
    assert fitting([seen(10, 60.0), seen(300, 60.0)]) == "6h"
    assert fitting([seen(1440, 60.0)]) == "24h"
    assert fitting([]) == "1h"
