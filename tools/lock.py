"""Pin every dependency with hashes: `requirements/*.txt` from the ranges in pyproject.toml.

The files hold no registry's address and no path, and each later one is constrained by those before it, so that all can be
installed together. Resolved on the oldest Python that is supported, which needs a superset of what newer ones need.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PROJECT["dependency-groups"]
RUNTIME = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"].get("optional-dependencies", {})
FILES = {
    "runtime": RUNTIME,
    "test": [*RUNTIME, *(each for extra in EXTRAS.values() for each in extra), *GROUPS["test"]],
    "lint": GROUPS["lint"],
    "build": PROJECT["build-system"]["requires"],
    "lock": GROUPS["lock"],
    "audit": GROUPS["audit"],
}
OPTIONS = (
    "--generate-hashes",
    "--strip-extras",
    "--allow-unsafe",
    "--no-header",
    "--no-emit-index-url",
    "--no-emit-trusted-host",
    "--no-emit-find-links",
    "--no-emit-options",
    "--annotation-style=line",
    "--quiet",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        done: list[str] = []
        for name, wanted in FILES.items():
            source, out = Path(folder, f"{name}.in"), Path(folder, f"{name}.txt")
            source.write_text("".join(f"-c {each}.txt\n" for each in done) + "".join(f"{each}\n" for each in wanted))
            kept = ROOT / "requirements" / f"{name}.txt"
            if kept.exists():
                out.write_text(kept.read_text())
            command = [sys.executable, "-m", "piptools", "compile", *OPTIONS, *sys.argv[1:], "-o", out.name, source.name]
            subprocess.run(command, check=True, cwd=folder)
            kept.write_text(f"# Made by `make lock` from pyproject.toml.\n{out.read_text()}")
            print(f"requirements/{name}.txt: {out.read_text().count('==')} packages")
            done.append(name)


if __name__ == "__main__":
    main()
