"""A new cluster in a data folder: whose it is, where its socket goes, and how it is made in one piece."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from app.errors import UnavailableError
from app.storage.binaries import major_of

SOCKET_LIMIT = 107
"""Bytes of a unix socket's path (sockaddr_un, unix(7))."""

Owner = tuple[int, int] | None
"""User and group that the server runs as; None: as we do."""


def unprivileged(data: Path) -> tuple[int, int]:
    """The user that a root-started server runs as: the folder's owner if it has one, else `postgres`, else `nobody`."""
    with contextlib.suppress(OSError):
        status = data.stat()
        if status.st_uid != 0:
            return status.st_uid, status.st_gid
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    return 65534, 65534


def own(folder: Path, owner: Owner) -> None:
    """Make a private folder of the server's user."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if owner is not None and folder.stat().st_uid != owner[0]:
        os.chown(folder, *owner)
    folder.chmod(0o700)


def socket_folder(directory: Path, owner: Owner) -> Path:
    """Inside the data folder, or where that is too deep, in the system's folder for what is temporary."""
    inside = directory / "run"
    if len(os.fsencode(inside / ".s.PGSQL.5432.lock")) <= SOCKET_LIMIT:
        return inside
    name = f"bandwatch-{hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]}"
    short = Path(tempfile.gettempdir()) / name
    with contextlib.suppress(FileNotFoundError):
        found = short.lstat()
        ours = {os.geteuid(), owner[0] if owner else os.geteuid()}
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in ours:  # somebody else was there first
            return Path(tempfile.mkdtemp(prefix="bandwatch-"))
    return short


def copied(bin_folder: Path, directory: Path) -> Path:
    """A copy of the binaries inside our folder, for a user who cannot reach the original (a clone under /root)."""
    copy = directory / f"pginstall-{major_of(bin_folder)}"
    if not copy.exists():
        part = directory / "pginstall.part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(bin_folder.parent, part, symlinks=True)
        for each in (part, *part.rglob("*")):
            if not each.is_symlink():
                each.chmod(each.stat().st_mode | (0o555 if each.is_dir() or os.access(each, os.X_OK) else 0o444))
        part.rename(copy)
    return copy / "bin"


async def make_cluster(directory: Path, bin_folder: Path, *, user: str, owner: Owner, synced: bool) -> None:
    """Make `directory/postgres`, in a folder beside it that is renamed when it is whole: a start that was killed on the way
    leaves nothing half made.

    Raises:
        UnavailableError: with what initdb said last.
    """
    part = directory / "postgres.part"
    shutil.rmtree(part, ignore_errors=True)
    own(part, owner)
    flags = ["--username", user, "--auth", "trust", "--encoding", "UTF8", "--no-instructions"]
    flags += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if major_of(bin_folder) >= 17 else ["--locale=C"]
    flags += [] if synced else ["--no-sync"]
    # a thread and not asyncio's subprocess: uvloop's knows no `user`
    done = await asyncio.to_thread(
        subprocess.run,
        [str(bin_folder / "initdb"), "--pgdata", str(part), *flags],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        cwd="/",
        user=None if owner is None else owner[0],
        group=None if owner is None else owner[1],
        extra_groups=None if owner is None else [],
    )
    if done.returncode:
        said = done.stdout.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise UnavailableError(f"initdb failed in {directory}: {said[-1]}")
    part.rename(directory / "postgres")
