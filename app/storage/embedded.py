"""A Postgres of our own, with no set-up: initdb, start, ready, stop, over binaries that somebody else built.

- One data folder, one service: a file lock says so at once to a second one.
- The server listens on a unix socket only, in a private folder; nothing outside the data folder is touched, but for that
  socket when the data folder's path is too long for one.
- Started as root, the server runs as an unprivileged user that owns the folder, since Postgres refuses root.
- A service killed with -9 takes the server with it (Linux). Where it could not, the next start stops what was left, and
  starts anew on the same data; it never adopts, since a left server may be about to get that signal.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import quote

import asyncpg

from app.errors import ConflictError, UnavailableError
from app.storage import cluster, launch, postmaster
from app.storage.binaries import find_binaries, first_closed, major_of, readable_by_all

USER = "bandwatch"
READY_S = 120.0
"""The longest that a start may take; recovery after a crash is part of it."""
OPTIONS: Mapping[str, str] = {
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
    "logging_collector": "on",
    "log_filename": "postgres-%a.log",
    "log_truncate_on_rotation": "on",
    "log_rotation_size": "0",
}
"""What differs from Postgres' defaults: a small server that is idle most of the time, and seven days of logs. Access is by
the socket's folder, which only the server's user and root can enter.
"""


@dataclass(slots=True, kw_only=True)
class EmbeddedPostgres:
    """The server of one data folder.

    Args:
        directory: kept over restarts; made when it is not there.
        binaries: folder of `initdb` and `postgres`; None looks for one.
        options: further settings, over `OPTIONS`.
    """

    directory: Path
    binaries: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    _lock: IO[str] | None = field(default=None)
    _bin: Path = field(default=Path())
    _owner: tuple[int, int] | None = field(default=None)
    _socket: Path = field(default=Path())
    _server: subprocess.Popen[bytes] | None = field(default=None)

    def __post_init__(self) -> None:
        self.directory = self.directory.absolute()

    @property
    def data(self) -> Path:
        """Postgres' own folder inside ours."""
        return self.directory / "postgres"

    @property
    def url(self) -> str:
        """The DSN of the database, over the unix socket; holds no secret."""
        return url_of(self._socket)

    async def start(self) -> None:
        """Lock the folder, make the cluster if it is new, and start the server; returns when it answers.

        Raises:
            ConflictError: another service uses the folder.
            UnavailableError: no binaries, a folder that cannot be made or that the server's user cannot reach, data of
                another major version, or a server that will not start.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._take_lock()
        except OSError as error:
            raise UnavailableError(f"cannot keep data in {self.directory}: {error.strerror}") from error
        try:
            self._prepare()
            if not (self.data / "PG_VERSION").exists():
                synced = self.options.get("fsync") != "off"
                await cluster.make_cluster(self.directory, self._bin, user=USER, owner=self._owner, synced=synced)
            self._check_version()
            await self.restart()
        except BaseException:
            await postmaster.stop(self.data, reap=self._reap)
            self._release()
            raise

    async def restart(self) -> None:
        """Stop what still runs in the folder, and start the server; the folder stays ours. Returns when it answers."""
        await postmaster.stop(self.data, reap=self._reap)
        if postmaster.is_stale(self.data):
            (self.data / "postmaster.pid").unlink(missing_ok=True)
        self._launch()
        await self._ready()

    async def stop(self) -> None:
        """Stop fast (open transactions are rolled back), and give the folder free."""
        try:
            await postmaster.stop(self.data, reap=self._reap)
        finally:
            self._release()

    def running_pid(self) -> int | None:
        """The process id of the folder's live server, or None."""
        self._reap()
        server = postmaster.find(self.data)
        return None if server is None else server.pid

    def _reap(self) -> None:
        if self._server is not None and self._server.poll() is not None:
            self._server = None

    def _take_lock(self) -> None:
        lock = (self.directory / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
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
        if self._lock is None:
            return
        if self._socket.parent == Path(tempfile.gettempdir()):
            shutil.rmtree(self._socket, ignore_errors=True)
        self._lock.close()
        self._lock = None

    def _prepare(self) -> None:
        self._bin = find_binaries(self.binaries)
        self._owner = cluster.unprivileged(self.data) if os.geteuid() == 0 else None
        if self._owner is not None:
            closed = first_closed(self.directory)
            if closed is not None and closed != self.directory:
                raise UnavailableError(
                    f"Postgres does not run as root, and its user cannot enter {closed}; "
                    "name a data folder outside of it, such as /var/lib/bandwatch, by --data or BANDWATCH_DATA"
                )
            self.directory.chmod(0o711)
            if not readable_by_all(self._bin):
                self._bin = cluster.copied(self._bin, self.directory)
        self._socket = cluster.socket_folder(self.directory, self._owner)
        cluster.own(self._socket, self._owner)

    def _check_version(self) -> None:
        made_by, ours = (self.data / "PG_VERSION").read_text().strip(), major_of(self._bin)
        if made_by != str(ours):
            raise UnavailableError(
                f"{self.data} was made by Postgres {made_by}, and {self._bin} is {ours}; "
                f"name the folder of a Postgres {made_by} by BANDWATCH_POSTGRES_BIN"
            )

    def _launch(self) -> None:
        """Not in a thread: the server ends with the thread that started it."""
        owner = self._owner or (-1, -1)
        arguments = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(owner[0]), str(owner[1])]
        arguments += [str(self._bin / "postgres"), "-D", str(self.data)]
        for name, value in {**OPTIONS, **self.options, "unix_socket_directories": str(self._socket)}.items():
            arguments += ["-c", f"{name}={value}"]
        with (self.directory / "postgres.log").open("wb") as output:
            self._server = subprocess.Popen(  # noqa: S603 - our own arguments
                arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True
            )

    async def _ready(self) -> None:
        """Wait until the server answers, and make sure of the database."""
        try:
            async with asyncio.timeout(READY_S):
                while (admin := await self._connected()) is None:
                    self._reap()
                    if self._server is None:
                        raise UnavailableError(f"Postgres does not start in {self.data}: {self._last_words()}")
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise UnavailableError(f"Postgres did not start in {self.data}: {self._last_words()}") from None
        try:
            if await admin.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", USER) is None:
                await admin.execute(f"CREATE DATABASE {USER}")
        finally:
            await admin.close()

    async def _connected(self) -> asyncpg.Connection | None:
        try:
            return await asyncpg.connect(host=str(self._socket), user=USER, database="postgres", timeout=10, ssl=False)
        except (OSError, TimeoutError, asyncpg.PostgresError):
            return None

    def _last_words(self) -> str:
        logs = sorted((self.data / "log").glob("*.log"), key=lambda path: path.stat().st_mtime)[-1:]
        texts = [path.read_text(errors="replace") for path in (self.directory / "postgres.log", *logs) if path.exists()]
        return " | ".join("\n".join(texts).strip().splitlines()[-3:]) or "it said nothing"


def url_of(socket: Path) -> str:
    """The DSN of the database behind a socket's folder."""
    return f"postgresql://{USER}@/{USER}?host={quote(str(socket), safe='/')}"


def running_url(directory: Path) -> str | None:
    """The DSN of the server that a service runs in that folder now, or None."""
    server = postmaster.find(directory.absolute() / "postgres")
    return None if server is None or server.socket is None else url_of(server.socket)
