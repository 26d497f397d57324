"""The root turns every wrong call into one sentence and the right exit code."""

import io
import json
import subprocess
import sys

import click
import pytest

from app.cli.root import run
from app.errors import UnavailableError


def test_version_and_help_succeed_without_importing_the_service() -> None:
    code = "import sys; from app.cli.root import run; run(['--help']); sys.exit('sqlalchemy' in sys.modules or 'fastapi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["frobnicate"]) == 2
    assert "No such command" in capsys.readouterr().err


def command_that_raises(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command("check")
    @click.option("--json", is_flag=True)
    def broken(**_: bool) -> None:
        raise error

    monkeypatch.setattr("app.cli.check.command", broken)


def test_a_fault_of_ours_is_one_sentence_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BANDWATCH_DEBUG", raising=False)
    command_that_raises(monkeypatch, ValueError("bad key sk-0123456789abcdef\nand more"))
    assert run(["check"]) == 1
    told = capsys.readouterr().err
    assert told == "bandwatch: this should not have happened: ValueError: bad key *** (BANDWATCH_DEBUG=1 shows where)\n"


def test_a_fault_of_ours_shows_its_traceback_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDWATCH_DEBUG", "1")
    command_that_raises(monkeypatch, ValueError("here"))
    with pytest.raises(ValueError, match="here"):
        run(["check"])


def test_what_a_task_group_wraps_is_said_as_itself(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command_that_raises(monkeypatch, ExceptionGroup("tasks", [UnavailableError("the port is in use")]))
    assert run(["check", "--json"]) == 1
    told = capsys.readouterr()
    assert told.err == "bandwatch: the port is in use\n"
    assert json.loads(told.out)["error"]["type"] == "unavailable"


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 0)])
def test_an_interrupt_and_a_closed_pipe_are_no_faults(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    command_that_raises(monkeypatch, error)
    assert run(["check"]) == code
