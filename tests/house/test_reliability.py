"""The page of known failures is whole, and every test that it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text()
ROWS = dict(re.findall(r"^\| (B\d+) \|(.*)\|$", PAGE, re.MULTILINE))
REFERENCES = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)))


def test_every_known_failure_has_its_line() -> None:
    assert list(ROWS) == [f"B{number}" for number in range(1, 74)]


def test_every_line_names_a_test_or_says_why_it_cannot_happen() -> None:
    assert [name for name, row in ROWS.items() if "::test_" not in row and "cannot happen" not in row] == []


@pytest.mark.parametrize(("file", "name"), REFERENCES)
def test_the_test_that_is_named_exists(file: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / file).read_text()
