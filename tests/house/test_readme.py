"""The README's commands run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from app.cli.root import root

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = [
    line.strip().partition("  ")[0].partition(" #")[0].strip() for line in re.findall(r"^    (\S.*)$", README, re.MULTILINE)
]
COMMANDS = [shlex.split(line) for line in BLOCKS if re.match(r"make |(?:\.venv/bin/)?bandwatch |cp ", line)]
BANDWATCH = [command[1:] for command in COMMANDS if command[0].endswith("bandwatch")]
HARMLESS = {"expect", "catalog"}


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 5


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {command[1] for command in COMMANDS if command[0] == "make"}
    named |= set(re.findall(r"`make ([a-z-]+)`", README + (ROOT / "CONTRIBUTING.md").read_text()))
    assert {"demo", "test"} <= named <= targets


def test_every_file_that_is_copied_exists() -> None:
    for command in COMMANDS:
        assert command[0] != "cp" or (ROOT / command[1]).exists()


@pytest.mark.parametrize("arguments", BANDWATCH, ids=" ".join)
def test_every_bandwatch_command_is_one_that_it_understands(arguments: list[str]) -> None:
    command = root.get_command(click.Context(root), arguments[0])
    assert command is not None
    command.make_parser(click.Context(command)).parse_args(list(arguments[1:]))


@pytest.mark.parametrize("arguments", [a for a in BANDWATCH if a[0] in HARMLESS], ids=" ".join)
def test_what_needs_nothing_runs(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "app", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_the_example_config_is_valid() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app", "check", "bandwatch.example.yaml"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
