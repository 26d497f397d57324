"""Our own Postgres survives us, is used by one service at a time, and touches nothing else."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import asyncpg
import pytest

from app.errors import ConflictError, UnavailableError
from app.storage.embedded import EmbeddedPostgres

HOLDER = """
import asyncio, sys
from pathlib import Path
from app.storage.embedded import EmbeddedPostgres
async def main():
    server = EmbeddedPostgres(directory=Path(sys.argv[1]))
    await server.start()
    print(server.url, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="bwe-"))
    yield path
    rmtree(path, ignore_errors=True)


def test_after_kill_9_the_next_start_finds_the_same_data_and_a_second_service_is_refused(folder: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    url = holder.stdout.readline().strip()

    async def write() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TABLE t AS SELECT 42 AS answer")
        await connection.close()
        with pytest.raises(ConflictError, match=f"in use by another Bandwatch \\(process {holder.pid}\\)"):
            await EmbeddedPostgres(directory=folder).start()

    async def read() -> int:
        server = EmbeddedPostgres(directory=folder)
        await server.start()
        connection = await asyncpg.connect(server.url)
        answer = await connection.fetchval("SELECT answer FROM t")
        await connection.close()
        await server.stop()
        assert server.running_pid() is None
        return int(answer)

    asyncio.run(write())
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    assert asyncio.run(read()) == 42


def test_missing_binaries_are_one_clear_sentence(folder: Path) -> None:
    with pytest.raises(UnavailableError, match=r"BANDWATCH_POSTGRES_BIN is .*, but there is no initdb in it"):
        asyncio.run(EmbeddedPostgres(directory=folder, binaries=folder).start())
