"""A software bill of materials of the runtime (CycloneDX 1.6, JSON) on standard output, from the pinned requirements."""

import json
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def licence(name: str) -> list[dict[str, Any]]:
    """What an installed package says of its licence; nothing where it is not installed."""
    try:
        said = metadata(name)
    except PackageNotFoundError:
        return []
    if said.get("License-Expression"):
        return [{"expression": said["License-Expression"]}]
    named = [c.rsplit(" :: ", 1)[-1] for c in said.get_all("Classifier") or [] if c.startswith("License ::")]
    return [{"license": {"name": each}} for each in named]


def component(name: str, version: str, hashes: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "properties": [{"name": "bandwatch:accepted-sha256", "value": each} for each in hashes],
    }
    if licences := licence(name):
        found["licenses"] = licences
    return found


def bill() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "requirements" / "runtime.txt").read_text()
    blocks = re.findall(r"^([a-z0-9][^=\s]*)==(\S+)([^\n]*(?:\n    --hash=[^\n]+)*)", text, re.MULTILINE)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": project["name"], "version": project["version"]}},
        "components": [component(name, version, re.findall(r"sha256:(\w+)", rest)) for name, version, rest in blocks],
    }


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1)
    print()
