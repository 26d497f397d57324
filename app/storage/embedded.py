"""A Postgres of our own, with no set-up: initdb, start, ready, stop, over binaries that somebody else built.

- One data folder, one service: a file lock says so at once to a second one.
- The server listens on a unix socket only, in a private folder; nothing outside the data folder is touched, but for that
  socket when the data folder's path is too long for one (107 bytes is the kernel's limit).
- Started as root, the server runs as an unprivileged user that owns the folder, since Postgres refuses root.
- A service killed with -9 leaves the server running; the next start finds it by `postmaster.pid` and adopts it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import quote

import structlog

from app.errors import ConflictError, UnavailableError
from app.storage.binaries import find_binaries, first_closed, readable_by_all

log = structlog.get_logger()

SOCKET_LIMIT = 107
USER = "bandwatch"
START_S = 60.0
OPTIONS = {
    "listen_addresses": "",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "jit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "checkpoint_timeout": "15min",
    "max_wal_size": "512MB",
    "autovacuum_naptime": "60s",
    "bgwriter_delay": "1s",
    "wal_writer_delay": "200ms",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "idle_in_transaction_session_timeout": "60s",
    "unix_socket_permissions": "0777",
    "dynamic_shared_memory_type": "posix",
}
"""What differs from Postgres' defaults: a small server that is idle most of the time. Access is by the socket's folder."""


@dataclass(slots=True, kw_only=True)
class EmbeddedPostgres:
    """The server of one data folder.

    Args:
        directory: kept over restarts; made when it is not there.
        binaries: folder of `initdb` and `postgres`; None looks for one.
    """

    directory: Path
    binaries: Path | None = None
    _lock: IO[str] | None = field(default=None)
    _bin: Path = field(default=Path())
    _owner: tuple[int, int] | None = field(default=None)
    _socket: Path = field(default=Path())
    _server: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def data(self) -> Path:
        """Postgres' own folder inside ours."""
        return self.directory / "postgres"

    @property
    def url(self) -> str:
        """The DSN of the database, over the unix socket; holds no secret."""
        return f"postgresql://{USER}@/{USER}?host={quote(str(self._socket), safe='/')}"

    async def start(self) -> None:
        """Lock the folder, make the cluster if it is new, and start or adopt the server; returns when it answers.

        Raises:
            ConflictError: another service uses the folder.
            UnavailableError: no binaries, a folder that the server's user cannot reach, or a server that will not start.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        try:
            self._prepare()
            if not (self.data / "PG_VERSION").exists():
                await self._initdb()
            if self.running_pid() is None:
                (self.data / "postmaster.pid").unlink(missing_ok=True)
                await self._launch()
            await self._wait_ready()
            await self._create_database()
        except BaseException:
            self._release()
            raise

    async def stop(self) -> None:
        """Stop fast (open transactions are rolled back), and give the folder free."""
        pid = self.running_pid()
        try:
            if pid is not None:
                os.kill(pid, signal.SIGINT)
                async with asyncio.timeout(30):
                    while self.running_pid() is not None:  # noqa: ASYNC110 - another process tells nobody
                        await asyncio.sleep(0.05)
        except ProcessLookupError:
            pass
        except TimeoutError:
            log.error("postgres_stop_timed_out", pid=pid)
            if (left := self.running_pid()) is not None:
                os.kill(left, signal.SIGQUIT)
        finally:
            self._release()

    def running_pid(self) -> int | None:
        """The process id of the folder's live server, or None."""
        if self._server is not None:
            self._server.poll()  # reaps it
        try:
            pid = int((self.data / "postmaster.pid").read_text().splitlines()[0])
            command = Path(f"/proc/{pid}/cmdline").read_bytes() if Path("/proc/self").exists() else b"postgres"
            os.kill(pid, 0)
        except (OSError, ValueError, IndexError):
            return None
        state = Path(f"/proc/{pid}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
            return None
        return pid if b"postgres" in command else None

    def _take_lock(self) -> None:
        lock = (self.directory / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            raise ConflictError(
                f"{self.directory} is in use by another Bandwatch (process {holder}); stop it, or use another folder"
            ) from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._socket.parent == Path(tempfile.gettempdir()):
            shutil.rmtree(self._socket, ignore_errors=True)

    def _prepare(self) -> None:
        self._bin = find_binaries(self.binaries)
        self._owner = _unprivileged(self.data) if os.geteuid() == 0 else None
        if self._owner is not None:
            closed = first_closed(self.directory)
            if closed is not None and closed != self.directory:
                raise UnavailableError(
                    f"Postgres does not run as root, and its user cannot enter {closed}; "
                    "name a data folder outside of it, such as /var/lib/bandwatch, by --data or BANDWATCH_DATA"
                )
            self.directory.chmod(0o711)
            if not readable_by_all(self._bin):
                self._bin = self._copied(self._bin)
        inside = self.directory / "run"
        if len(str(inside / ".s.PGSQL.5432.lock")) <= SOCKET_LIMIT:
            self._socket = inside
            self._own(inside)
        else:
            self._socket = Path(tempfile.mkdtemp(prefix="bandwatch-"))
            self._own(self._socket)
        self._own(self.data)

    def _own(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if self._owner is not None and folder.stat().st_uid != self._owner[0]:
            os.chown(folder, *self._owner)
        folder.chmod(0o700)

    def _copied(self, bin_folder: Path) -> Path:
        """A copy of the binaries inside our folder, for a user who cannot reach the original (a clone under /root)."""
        copy = self.directory / "pginstall"
        if not (copy / "bin" / "initdb").exists():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(bin_folder.parent, copy, symlinks=True)
            for part in (copy, *copy.rglob("*")):
                if not part.is_symlink():
                    part.chmod(part.stat().st_mode | (0o555 if part.is_dir() or os.access(part, os.X_OK) else 0o444))
        return copy / "bin"

    async def _initdb(self) -> None:
        flags = ["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"]
        code, output = await self._call(str(self._bin / "initdb"), "--pgdata", str(self.data), *flags)
        if code:
            raise UnavailableError(
                f"initdb failed in {self.data}: {output.strip().splitlines()[-1] if output.strip() else code}"
            )

    async def _launch(self) -> None:
        settings = {**OPTIONS, "unix_socket_directories": str(self._socket)}
        arguments = [str(self._bin / "postgres"), "-D", str(self.data)]
        for name, value in settings.items():
            arguments += ["-c", f"{name}={value}"]
        with (self.directory / "postgres.log").open("ab") as output:
            self._server = await asyncio.to_thread(self._spawn, arguments, output)

    def _spawn(self, arguments: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        user, group, extra = _as_user(self._owner)
        return subprocess.Popen(  # noqa: S603 - our own arguments
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            user=user,
            group=group,
            extra_groups=extra,
        )

    async def _wait_ready(self) -> None:
        if (pidfile := self.data / "postmaster.pid").exists() and len(lines := pidfile.read_text().splitlines()) > 4:
            adopted = Path(lines[4].strip()) if lines[4].strip() else self._socket
            if adopted != self._socket and (adopted / ".s.PGSQL.5432").exists():
                self._socket = adopted
        try:
            async with asyncio.timeout(START_S):
                while (await self._call(str(self._bin / "pg_isready"), "-q", "-h", str(self._socket)))[0]:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        except TimeoutError:
            tail = (self.directory / "postgres.log").read_text(errors="replace").strip().splitlines()[-3:]
            raise UnavailableError(f"Postgres did not start in {self.data}: {' | '.join(tail)}") from None

    async def _create_database(self) -> None:
        psql = [str(self._bin / "psql"), "-h", str(self._socket), "-U", USER, "-d", "postgres", "-tAXq", "-c"]
        _, found = await self._call(*psql, f"SELECT 1 FROM pg_database WHERE datname = '{USER}'")  # noqa: S608 - a constant
        if found.strip() != "1":
            code, output = await self._call(*psql, f"CREATE DATABASE {USER}")
            if code:
                raise UnavailableError(f"could not create the database: {output.strip()}")

    async def _call(self, *command: str) -> tuple[int, str]:
        user, group, extra = _as_user(self._owner)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd="/",
            user=user,
            group=group,
            extra_groups=extra,
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode(errors="replace")


def _as_user(owner: tuple[int, int] | None) -> tuple[int | None, int | None, Sequence[int] | None]:
    """User, group and further groups of a process that we start; all None to stay who we are."""
    return (None, None, None) if owner is None else (owner[0], owner[1], [])


def _unprivileged(data: Path) -> tuple[int, int]:
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
