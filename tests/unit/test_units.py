"""Durations read as people write them."""

import pytest

from app.units import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("60s", 60.0), ("5m", 300.0), ("2h", 7200.0), ("30d", 2592000.0), ("1h30m", 5400.0), ("2y", 63072000.0)],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m5", "5 m", "-5s", "5x", "5s!"])
def test_a_malformed_duration_says_how_durations_are_written(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 500ms"):
        parse_duration(text)


@pytest.mark.parametrize(("seconds", "text"), [(0.000812, "812 µs"), (0.203, "203 ms"), (1.25, "1.25 s"), (300.0, "5 min")])
def test_a_duration_is_shown_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
