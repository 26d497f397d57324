"""What must never be committed: addresses of registries, paths of somebody's machine, secrets, mocks."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REGISTRIES = (
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "registry.npm" + "js.org",
    "proxy.golang" + ".org",
    "deb.debian" + ".org",
)
MACHINES = re.compile(r"(?<![\w.-])/(?:work|root|home/\w+|Users/\w+|opt/(?:wheels|pypi))/|\.pyenv")
SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\bsk-(?:proj-|ant-)[A-Za-z0-9_-]{20,}|\bgsk_[A-Za-z0-9]{40,}|\bcsk-[a-z0-9]{40,}|\bAKIA[A-Z0-9]{16}\b"
)
CANARIES = {"tests/unit/test_secrets.py"}
"""Invented keys that must look real, because masking them is what is tested."""
MOCKS = re.compile(r"unittest\.mock|\bMagicMock\b|\bmocker\b|pytest_mock|freezegun|time_machine")
RECORDED = ("tests/corpus/", "benchmarks/data/", "app/catalog/data/", "app/web/static/")
"""Data as others published it, and libraries as they are."""


def committed() -> dict[str, str]:
    """Path -> text of every text file that git knows, or would take."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git work tree")
    found = {}
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink():
            raw = path.read_bytes()
            if b"\0" not in raw:
                found[name] = raw.decode("utf-8", "replace")
    return found


@pytest.fixture(scope="module")
def tree() -> dict[str, str]:
    return committed()


def test_no_registry_is_named(tree: dict[str, str]) -> None:
    assert [(name, host) for name, text in tree.items() for host in REGISTRIES if host in text] == []


def test_no_path_of_a_machine_is_named(tree: dict[str, str]) -> None:
    here = Path(__file__).relative_to(ROOT).as_posix()
    own = {name: text for name, text in tree.items() if name != here and not name.startswith(RECORDED)}
    assert [(name, found[0]) for name, text in own.items() if (found := MACHINES.search(text))] == []


def test_no_secret_is_kept(tree: dict[str, str]) -> None:
    assert [
        (name, found[0][:12]) for name, text in tree.items() if name not in CANARIES and (found := SECRETS.search(text))
    ] == []


def test_nothing_is_mocked(tree: dict[str, str]) -> None:
    here = Path(__file__).relative_to(ROOT).as_posix()
    code = {name: text for name, text in tree.items() if name.endswith(".py") and name != here}
    assert [(name, found[0]) for name, text in code.items() if (found := MOCKS.search(text))] == []


def test_no_file_is_larger_than_a_megabyte(tree: dict[str, str]) -> None:
    own = [name for name in tree if not name.startswith(RECORDED)]
    assert [name for name in own if (ROOT / name).stat().st_size > 1_000_000] == []
