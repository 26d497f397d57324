"""Our own Postgres survives us, is used by one service at a time, and touches nothing else."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from shutil import rmtree

import asyncpg
import pytest
import uvloop

from app.errors import ConflictError, UnavailableError
from app.storage import postmaster
from app.storage.embedded import EmbeddedPostgres, running_url

QUICK = {"fsync": "off"}
HOLDER = """
import asyncio, sys
from pathlib import Path
from app.storage.embedded import EmbeddedPostgres
async def main():
    server = EmbeddedPostgres(directory=Path(sys.argv[1]))
    await server.start()
    print(server.url, server.running_pid(), flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives up being root")


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="bwe-"))
    yield path
    rmtree(path, ignore_errors=True)


def serving(server: EmbeddedPostgres, scenario: Callable[[], Awaitable[None]]) -> None:
    """On the event loop that the service runs on."""

    async def main() -> None:
        await server.start()
        try:
            await scenario()
        finally:
            await server.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def ask(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def eventually_gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_after_kill_9_the_server_goes_too_and_the_next_start_finds_the_same_data(folder: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    url, pid = holder.stdout.readline().split()
    asyncio.run(ask(url, "SELECT 1"))

    async def write() -> None:
        await ask(url, "CREATE TABLE t AS SELECT 42 AS answer")
        assert running_url(folder) == url
        with pytest.raises(ConflictError, match=f"in use by another Bandwatch \\(process {holder.pid}\\)"):
            await EmbeddedPostgres(directory=folder).start()

    asyncio.run(write())
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    if sys.platform == "linux":
        assert eventually_gone(int(pid))
    server = EmbeddedPostgres(directory=folder)

    async def read() -> None:
        assert await ask(server.url, "SELECT answer FROM t") == 42

    serving(server, read)
    assert server.running_pid() is None
    assert running_url(folder) is None


def test_a_server_that_was_left_behind_is_stopped_and_started_anew(folder: Path) -> None:
    left, server = (EmbeddedPostgres(directory=folder, options=QUICK) for _ in range(2))

    async def main() -> None:
        await left.start()
        before = left.running_pid()
        await ask(left.url, "CREATE TABLE t AS SELECT 7 AS answer")
        left._release()
        await server.start()
        assert await ask(server.url, "SELECT answer FROM t") == 7
        assert server.running_pid() != before
        await server.stop()
        assert left.running_pid() is None

    asyncio.run(main())


def test_a_server_that_died_is_started_again_while_the_folder_stays_ours(folder: Path) -> None:
    server = EmbeddedPostgres(directory=folder, options=QUICK)

    async def scenario() -> None:
        pid = server.running_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert eventually_gone(pid)
        assert server.running_pid() is None
        await server.restart()
        assert await ask(server.url, "SELECT 1") == 1

    serving(server, scenario)


def test_a_start_that_was_killed_while_making_the_cluster_leaves_nothing_half_made(folder: Path) -> None:
    half = folder / "postgres.part"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(directory=folder, options=QUICK)

    async def scenario() -> None:
        assert await ask(server.url, "SHOW server_encoding") == "UTF8"
        assert not half.exists()

    serving(server, scenario)


def test_a_path_too_long_for_a_socket_gets_a_short_one_that_goes_with_the_server(folder: Path) -> None:
    server = EmbeddedPostgres(directory=folder / ("d" * 60) / ("e" * 60), options=QUICK)
    for part in (folder, folder / ("d" * 60)):
        part.mkdir(exist_ok=True)
        part.chmod(0o755)

    there: list[bool] = []

    def socket_is_there() -> bool:
        return Path(server.url.partition("host=")[2]).exists()

    async def scenario() -> None:
        assert await ask(server.url, "SELECT 1") == 1
        there.append(socket_is_there())

    serving(server, scenario)
    assert [*there, socket_is_there()] == [True, False]


def test_a_number_in_the_pid_file_that_now_belongs_to_another_process_is_nobodys_server(folder: Path) -> None:
    data = folder / "postgres"
    data.mkdir()
    (data / "postmaster.pid").write_text(f"{os.getpid()}\n{data}\n0\n5432\n{folder}\n")
    assert postmaster.find(data) is None
    asyncio.run(postmaster.stop(data))  # and we still live
    if sys.platform == "linux":
        assert postmaster.is_stale(data)


def test_data_of_another_major_version_is_refused_in_one_sentence(folder: Path) -> None:
    (folder / "postgres").mkdir()
    (folder / "postgres" / "PG_VERSION").write_text("11\n")
    with pytest.raises(UnavailableError, match=r"was made by Postgres 11, and .* name the folder of a Postgres 11"):
        asyncio.run(EmbeddedPostgres(directory=folder).start())


def test_a_server_that_cannot_start_says_why_at_once(folder: Path) -> None:
    server = EmbeddedPostgres(directory=folder, options={"shared_buffers": "nonsense"})
    with pytest.raises(UnavailableError, match=r'Postgres does not start in .*invalid value for parameter "shared_buffers"'):
        asyncio.run(server.start())
    right = EmbeddedPostgres(directory=folder, options=QUICK)

    async def scenario() -> None:
        assert await ask(right.url, "SELECT 1") == 1

    serving(right, scenario)


def test_missing_binaries_are_one_clear_sentence(folder: Path) -> None:
    with pytest.raises(UnavailableError, match=r"BANDWATCH_POSTGRES_BIN is .*, but there is no initdb in it"):
        asyncio.run(EmbeddedPostgres(directory=folder, binaries=folder).start())


def test_a_folder_that_cannot_be_made_is_one_clear_sentence(folder: Path) -> None:
    (folder / "file").touch()
    with pytest.raises(UnavailableError, match=r"cannot keep data in .*: (Not a directory|File exists)"):
        asyncio.run(EmbeddedPostgres(directory=folder / "file" / "data").start())


@AS_ROOT
def test_started_as_root_the_server_is_not_root_and_owns_what_it_has(folder: Path) -> None:
    server = EmbeddedPostgres(directory=folder, options=QUICK)

    owners: set[int] = set()

    def look() -> None:
        owners.update(path.stat().st_uid for path in (Path(f"/proc/{server.running_pid()}"), *server.data.rglob("*")))

    async def scenario() -> None:
        look()

    serving(server, scenario)
    assert owners == {server.data.stat().st_uid}
    assert 0 not in owners
    assert folder.stat().st_uid == 0


@AS_ROOT
def test_started_as_root_a_folder_that_the_servers_user_cannot_reach_is_one_clear_sentence(folder: Path) -> None:
    with pytest.raises(UnavailableError, match=f"its user cannot enter {folder}; name a data folder outside of it"):
        asyncio.run(EmbeddedPostgres(directory=folder / "inside").start())
    assert folder.stat().st_mode & 0o777 == 0o700
