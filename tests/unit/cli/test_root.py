"""The root turns every wrong call into one sentence and the right exit code."""

import subprocess
import sys

import pytest

from app.cli.root import run


def test_version_and_help_succeed_without_importing_the_service() -> None:
    code = "import sys; from app.cli.root import run; run(['--help']); sys.exit('sqlalchemy' in sys.modules or 'fastapi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["frobnicate"]) == 2
    assert "No such command" in capsys.readouterr().err
