"""The database of a command: the server that is named, the one that a service runs in the folder, or one for the moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from app.errors import UnavailableError
from app.settings import Settings
from app.storage.database import Database
from app.storage.embedded import EmbeddedPostgres, running_url
from app.storage.migrate import revisions, upgrade


@asynccontextmanager
async def attached(settings: Settings) -> AsyncIterator[Database]:
    """Postgres by `BANDWATCH_DATABASE_URL`, else the embedded one of the data folder: a running service's is shared, and
    where none runs, it is started for as long as the command takes.

    Raises:
        UnavailableError: it does not answer, or cannot be started.
        ConflictError: a service is just starting in the folder.
    """
    async with AsyncExitStack() as stack:
        database = Database(dsn=await _dsn(settings, stack), pool=2)
        stack.push_async_callback(database.close)
        yield database


async def _dsn(settings: Settings, stack: AsyncExitStack) -> str:
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    if (url := running_url(settings.data)) is not None:
        return url
    server = EmbeddedPostgres(directory=settings.data, binaries=settings.postgres_bin)
    await server.start()
    stack.push_async_callback(server.stop)
    return server.url


async def need_schema(database: Database, *, migrate: bool) -> None:
    """Make sure that the schema is the one that this program knows: brought there with `migrate`, else only looked at.

    Raises:
        UnavailableError: it is another one; the text says what to do.
    """
    if migrate:
        await upgrade(database)
        return
    await database.check()
    current, newest = await revisions(database)
    if current != newest:
        raise UnavailableError(f"the database's schema is at {current}, and this program needs {newest}: bandwatch db upgrade")
