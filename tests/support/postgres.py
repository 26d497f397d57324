"""One real Postgres a test session, migrated once; each test gets a database of its own, copied from a template."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import asyncpg

from app.storage.database import Database
from app.storage.embedded import EmbeddedPostgres
from app.storage.migrate import upgrade
from app.storage.partitions import create_ahead

TEMPLATE = "bandwatch"


@dataclass
class Cluster:
    """The session's server."""

    server: EmbeddedPostgres
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_database(self) -> str:
        """The DSN of a fresh, migrated database."""
        name = f"t{next(self.numbers)}"
        asyncio.run(self._copy(name))
        return self.server.url.replace(f"/{TEMPLATE}?", f"/{name}?")

    async def _copy(self, name: str) -> None:
        admin = await asyncpg.connect(self.server.url.replace(f"/{TEMPLATE}?", "/postgres?"))
        try:
            await admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY")
        finally:
            await admin.close()


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Start the session's server on a short path (a socket's path is at most 107 bytes), and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="bwt-"))
    server = EmbeddedPostgres(directory=folder, options={"fsync": "off", "full_page_writes": "off"})

    async def prepare() -> None:
        await server.start()
        database = Database(dsn=server.url)
        await upgrade(database)
        await create_ahead(database, now=datetime.now(UTC))
        await database.close()

    asyncio.run(prepare())
    try:
        yield Cluster(server=server)
    finally:
        asyncio.run(server.stop())
        shutil.rmtree(folder, ignore_errors=True)
