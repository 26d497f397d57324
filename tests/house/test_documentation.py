"""Documentation that fails: what can be called, read or set is written down, and what is written down exists."""

import re
from pathlib import Path
from typing import Any

import click
import pytest

from app.cli.root import COMMANDS, root
from app.measurement.model import ErrorClass, Outcome
from app.settings import Settings, variable

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def documented(page: str) -> str:
    return (DOCS / page).read_text()


def leaves(name: str, command: click.Command) -> list[tuple[str, click.Command]]:
    """A command, or the commands of a group."""
    if isinstance(command, click.Group):
        return [leaf for sub, child in command.commands.items() for leaf in leaves(f"{name} {sub}", child)]
    return [(name, command)]


def existing() -> list[tuple[str, click.Command]]:
    context = click.Context(root)
    found = []
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        assert command is not None
        found += leaves(name, command)
    return found


def test_every_command_and_every_option_is_in_the_manual() -> None:
    manual = documented("cli.md")
    missing = [name for name, _ in existing() if f"bandwatch {name}" not in manual]
    assert missing == []
    sections = dict(re.findall(r"^## `bandwatch (\w+).*?`[^\n]*\n(.*?)(?=^## |\Z)", manual, re.MULTILINE | re.DOTALL))
    options = [
        (name, option)
        for name, command in existing()
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option.startswith("--")
        and f"`{option}" not in sections.get(name.split()[0], "")
        and f" {option}" not in sections.get(name.split()[0], "")
    ]
    assert options == []


def test_the_manual_names_no_command_that_does_not_exist() -> None:
    named = set(re.findall(r"^## `bandwatch (\w+)", documented("cli.md"), re.MULTILINE))
    assert named <= set(COMMANDS)


def test_every_metric_is_documented_and_every_documented_one_exists() -> None:
    code = "".join(path.read_text() for path in (ROOT / "app" / "metrics").glob("*.py"))
    made = set(re.findall(r'"(bandwatch_\w+)"', code))
    told = {
        name.removesuffix("_total") for name in re.findall(r"^\| `(bandwatch_\w+)`", documented("metrics.md"), re.MULTILINE)
    }
    assert told == made


def test_every_setting_is_documented() -> None:
    page = documented("settings.md")
    assert [name for name in Settings.model_fields if f"`{variable(name)}`" not in page] == []


@pytest.mark.parametrize("kind", [Outcome, ErrorClass])
def test_every_outcome_and_error_class_is_documented(kind: Any) -> None:
    pages = "".join(path.read_text() for path in DOCS.glob("*.md"))
    assert [value for value in kind if f"`{value}`" not in pages] == []


def test_decision_records_are_numbered_without_a_gap_and_titled() -> None:
    files = sorted((DOCS / "decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in files] == list(range(1, len(files) + 1))
    assert [path.name for path in files if not path.read_text().startswith("# ")] == []


def test_no_link_between_pages_is_dead() -> None:
    pages = [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s]+)", page.read_text())]
    dead = [(page.name, link) for page, link in links if "://" not in link and not (page.parent / link).exists()]
    assert dead == []
