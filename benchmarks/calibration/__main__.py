"""`make validate`: hold every claim about the expectation against published measurements, and write docs/calibration.md.

Exits with 1 when a bound does not hold. `--check` writes nothing, and fails where the committed files are out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.catalog.load import load_catalog
from benchmarks.calibration.checks import Evidence, checks
from benchmarks.calibration.report import files

ROOT = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    evidence = Evidence.read(load_catalog())
    found = list(checks(evidence))
    for check in found:
        print(f"{'ok  ' if check.holds else 'FAIL'} {check.claim}: {check.found} (must be: {check.bound})")
    written = files(evidence, found)
    stale = [path for path, text in written.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"FAIL {path.relative_to(ROOT)} is out of date: run make validate")
    else:
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(written[path], encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
        stale = []
    return 0 if all(check.holds for check in found) and not stale else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
