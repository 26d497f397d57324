"""The server that runs in a data folder: who it is, and how it is stopped, whoever started it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

log = structlog.get_logger()

FAST_S, IMMEDIATE_S = 30.0, 5.0
PID_LINE, SOCKET_LINE = 0, 4
"""Lines of `postmaster.pid` (Postgres' miscadmin.h, LOCK_FILE_LINE_*, from 0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmaster:
    """A live server: its process, and the folder of its socket (None: not yet written)."""

    pid: int
    socket: Path | None


def find(data: Path) -> Postmaster | None:
    """The live server of a data folder, or None.

    A process counts only when it is a Postgres that was started on this very folder: after a crash or in a new container,
    the number in `postmaster.pid` may have gone to anybody.
    """
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        pid = int(lines[PID_LINE])
    except (OSError, ValueError, IndexError):
        return None
    command = _command(pid)
    if not any(b"postgres" in part for part in command[:1]) or os.fsencode(data) not in command:
        return None
    socket = lines[SOCKET_LINE].strip() if len(lines) > SOCKET_LINE else ""
    return Postmaster(pid=pid, socket=Path(socket) if socket else None)


def is_stale(data: Path) -> bool:
    """May `postmaster.pid` be removed? Only where it is certain that nothing works in the folder: neither the process that
    it names, nor one that was left behind by it (each has the folder as its working directory).
    """
    if not sys.platform.startswith("linux"):
        return False  # Postgres decides by itself
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cwd").readlink() == data and not _is_zombie(entry):
                    return False
    return True


async def stop(data: Path, *, reap: Callable[[], object] = lambda: None) -> None:
    """Stop the server of a data folder: fast (what is open is rolled back), then at once, then for good.

    Args:
        data: the folder; nothing happens when no server runs there.
        reap: called when it is gone; collects our own child.
    """
    for number, patience_s in ((signal.SIGINT, FAST_S), (signal.SIGQUIT, IMMEDIATE_S), (signal.SIGKILL, IMMEDIATE_S)):
        server = find(data)
        if server is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while _lives(server.pid):  # noqa: ASYNC110 - another process tells nobody
                    await asyncio.sleep(0.02)
                reap()
                return
        log.error("postgres_does_not_stop", pid=server.pid, signal=number.name, waited_s=patience_s)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(Path(f"/proc/{pid}"))


def _is_zombie(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


def _command(pid: int) -> list[bytes]:
    """The command line of a live process; empty when there is none."""
    process = Path(f"/proc/{pid}")
    if process.parent.joinpath("self").exists():
        with contextlib.suppress(OSError):
            return [] if _is_zombie(process) else (process / "cmdline").read_bytes().split(b"\0")
        return []
    shown = subprocess.run(["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False)  # noqa: S603
    return shown.stdout.split()
