"""The pinned requirements answer the ranges of pyproject.toml, each with hashes."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PROJECT["dependency-groups"]
RUNTIME = PROJECT["project"]["dependencies"]
FILES = {
    "runtime": RUNTIME,
    "test": RUNTIME + GROUPS["test"] + PROJECT["project"]["optional-dependencies"]["parquet"],
    "lint": GROUPS["lint"],
    "lock": GROUPS["lock"],
    "audit": GROUPS["audit"],
    "build": PROJECT["build-system"]["requires"],
}


def pins(name: str) -> dict[str, tuple[str, int]]:
    """Package -> (version, number of hashes)."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    blocks = re.findall(r"^([A-Za-z0-9][^=\s]*)==(\S+)([^\n]*(?:\n    --hash=[^\n]+)*)", text, re.MULTILINE)
    return {canonicalize_name(package): (version, block.count("--hash=sha256:")) for package, version, block in blocks}


@pytest.mark.parametrize("name", sorted(FILES))
def test_what_pyproject_asks_for_is_pinned_within_its_range(name: str) -> None:
    pinned = pins(name)
    for each in FILES[name]:
        wanted = Requirement(each)
        version, _ = pinned[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(version), f"{each}, but {version} is pinned: run `make lock`"


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_pin_has_hashes(name: str) -> None:
    assert [package for package, (_, hashes) in pins(name).items() if hashes == 0] == []


def test_files_that_are_installed_together_agree() -> None:
    seen: dict[str, str] = {}
    for name in FILES:
        for package, (version, _) in pins(name).items():
            assert seen.setdefault(package, version) == version, f"{package} differs in {name}.txt"


def test_no_requirement_file_holds_an_address_or_a_path() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        assert re.findall(r"https?:|file:/|--index|--find-links|^/", path.read_text(), re.MULTILINE) == []
