"""Ask the advisory database about every pinned runtime dependency. Exit 1 when it knows of a vulnerability.

Where it is out of reach, or where the package index at hand holds no advisories (a mirror), this says so and exits 0: known
by asking first about a release that is known to be vulnerable.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KNOWN = "jinja2==2.11.2"
"""CVE-2020-28493, CVE-2024-22195 and more."""


def ask(requirements: Path, *options: str) -> tuple[list[dict[str, Any]] | None, str]:
    """What pip-audit answers, a dictionary a package; None where it could not ask, with its last words."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        command = [
            sys.executable,
            "-m",
            "pip_audit",
            "--requirement",
            str(requirements),
            "--disable-pip",
            "--no-deps",
            *options,
        ]
        command += ["--format", "json", "--output", str(out), "--progress-spinner", "off", "--timeout", "15"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not out.exists() or not out.read_text().strip():
            return None, (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return json.loads(out.read_text())["dependencies"], ""


def vulnerable(packages: list[dict[str, Any]]) -> list[str]:
    """One line a vulnerability."""
    return [
        f"{each['name']} {each['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no release'}"
        for each in packages
        for found in each.get("vulns", [])
    ]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder, "known.txt")
        sample.write_text(f"{KNOWN}\n")
        known, why = ask(sample)
    if known is None or not vulnerable(known):
        print(f"audit skipped: the advisory database is not in reach ({why or 'the index at hand holds no advisories'})")
        return 0
    packages, why = ask(ROOT / "requirements" / "runtime.txt", "--require-hashes")
    if packages is None:
        print(f"audit failed: {why}", file=sys.stderr)
        return 1
    found = vulnerable(packages)
    print("\n".join(found) or f"{len(packages)} packages, no known vulnerability")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
