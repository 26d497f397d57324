"""The connection to Postgres: one pool a process, short transactions, and errors in our own words.

A silent server must not hang anybody: connecting, and every statement, has its time. When a statement got no answer, no
connection of before is used again: they may all be dead without knowing it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncpg
import msgspec
from sqlalchemy import URL, ExceptionContext, event, make_url, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.errors import UnavailableError, UsageError

CONNECT_S = 5.0
STATEMENT_S = 30.0
QUICK_S = 8.0
"""What is short has this long for all of it, so that after an outage nobody waits for an answer that was lost in it."""
OLDEST = 15


def sqlalchemy_url(dsn: str) -> URL:
    """A DSN as SQLAlchemy's asyncpg dialect wants it.

    Raises:
        UsageError: when it is not a Postgres DSN; the text does not repeat it, for it may hold a password.
    """
    try:
        url = make_url(dsn)
    except Exception as error:
        raise UsageError("BANDWATCH_DATABASE_URL is not a URL; write postgresql://user:password@host:5432/name") from error
    if url.get_backend_name() not in {"postgresql", "postgres"}:
        raise UsageError(f"BANDWATCH_DATABASE_URL names {url.get_backend_name()}; only postgresql:// works")
    return url.set(drivername="postgresql+asyncpg")


GONE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.InternalClientError,
)
"""What asyncpg raises of a server that is away, or goes away in the middle of a question."""


@dataclass(slots=True, kw_only=True)
class Database:
    """Postgres, as storage uses it. `read` and `write` give a connection for one short unit of work.

    Args:
        dsn: where it is; may hold a password, and is never shown.
        pool: the most connections of this process.
        statement_s: how long a statement may take.
    """

    dsn: str
    pool: int = 8
    statement_s: float = STATEMENT_S
    _engine: AsyncEngine | None = field(default=None)

    @property
    def engine(self) -> AsyncEngine:
        """The engine, made at first use; nothing is connected until a statement is."""
        if self._engine is None:
            self._engine = create_async_engine(
                sqlalchemy_url(self.dsn),
                pool_size=self.pool,
                max_overflow=4,
                pool_timeout=5,
                pool_recycle=1800,
                hide_parameters=True,
                json_serializer=_to_json,
                json_deserializer=msgspec.json.decode,
                connect_args={
                    "timeout": CONNECT_S,
                    "command_timeout": self.statement_s,
                    "server_settings": {"application_name": "bandwatch", "timezone": "UTC", "jit": "off"},
                },
            )
            event.listen(self._engine.sync_engine, "handle_error", _distrust)
        return self._engine

    @asynccontextmanager
    async def write(self, *, within_s: float | None = QUICK_S) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end, rolled back when anything is raised, or when it takes longer than `within_s`.

        Raises:
            UnavailableError: Postgres is away, silent or overloaded.
        """
        async with _translated(), asyncio.timeout(within_s), self.engine.begin() as connection:
            yield connection

    @asynccontextmanager
    async def read(self, *, within_s: float | None = None) -> AsyncIterator[AsyncConnection]:
        """One read-only look; never leaves anything behind. None: as long as it takes, as an export does.

        Raises:
            UnavailableError: Postgres is away, silent or overloaded.
        """
        async with _translated(), asyncio.timeout(within_s), self.engine.connect() as connection:
            await connection.execution_options(postgresql_readonly=True)
            yield connection

    async def connect_raw(self) -> asyncpg.Connection:
        """A connection of its own, outside of the pool, for locks and notifications. The caller closes it."""
        try:
            return await asyncpg.connect(raw_dsn(self.dsn), timeout=CONNECT_S)
        except (asyncpg.PostgresError, *GONE) as error:
            raise UnavailableError(f"Postgres does not answer: {_short(error)}") from error

    async def check(self) -> str:
        """The server's version.

        Raises:
            UnavailableError: it is away.
            UsageError: it is older than 15.
        """
        async with self.read() as connection:
            number = int((await connection.execute(text("SHOW server_version_num"))).scalar_one())
        if number < OLDEST * 10000:
            raise UsageError(f"Postgres {number // 10000} is too old; {OLDEST} or newer is needed")
        return f"{number // 10000}.{number % 10000}"

    def pool_state(self) -> dict[str, int]:
        """How many of this process's connections are in use and idle."""
        if self._engine is None:
            return {"in_use": 0, "idle": 0}
        pool = self._engine.pool
        return {"in_use": pool.checkedout(), "idle": pool.checkedin()}  # type: ignore[attr-defined]

    async def close(self) -> None:
        """Close every connection."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.dispose()


AWAY = ("08", "57P", "53")
"""Classes of SQLSTATE: no connection, shutting down or starting up, out of connections or memory or disk."""


def _distrust(context: ExceptionContext) -> None:
    """Let no connection of before be used again when a statement was given up without an answer."""
    if isinstance(context.original_exception, (TimeoutError, asyncio.CancelledError)):
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = True


def raw_dsn(dsn: str) -> str:
    """The DSN for asyncpg itself."""
    return sqlalchemy_url(dsn).set(drivername="postgresql").render_as_string(hide_password=False)


def _to_json(value: object) -> str:
    """JSON of plain types and of domain objects alike; a number that JSON does not have (NaN) becomes null."""
    return msgspec.json.encode(value).decode()


def _short(error: BaseException) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    """Foreign errors that mean 'Postgres is away' become ours; a fault of our own SQL stays what it is."""
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeoutError) as error:
        raise UnavailableError(f"Postgres does not answer: {_short(getattr(error, 'orig', None) or error)}") from error
    except DBAPIError as error:
        state = str(getattr(error.orig, "sqlstate", None) or "")
        if error.connection_invalidated or isinstance(error.orig, (OSError, asyncio.TimeoutError)) or state.startswith(AWAY):
            raise UnavailableError(f"Postgres went away: {_short(error.orig or error)}") from error
        raise
    except GONE as error:
        raise UnavailableError(f"Postgres does not answer: {_short(error)}") from error
