"""Migrations: run at start by whoever comes first; the others wait for the lock and find the work done."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from app.errors import UnavailableError
from app.storage.database import Database

LOCK = 0x62616E646D6967  # "bandmig"
LONGEST_S = 3600.0
"""A migration may have to rewrite what is large."""


def _config() -> Config:
    spec = importlib.util.find_spec("migrations")
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError("the migrations are not installed beside the application; install the bandwatch package whole")
    config = Config()
    config.set_main_option("script_location", str(Path(next(iter(spec.submodule_search_locations)))).replace("%", "%%"))
    return config


def _upgrade(connection: Connection) -> str:
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    return MigrationContext.configure(connection).get_current_revision() or "none"


def _revisions(connection: Connection) -> tuple[str, str]:
    current = MigrationContext.configure(connection).get_current_revision() or "none"
    return current, ScriptDirectory.from_config(_config()).get_current_head() or "none"


async def upgrade(database: Database) -> str:
    """Bring the schema to the newest revision, in one transaction; returns the revision.

    Raises:
        UnavailableError: Postgres is away.
        UsageError: Postgres is too old.
    """
    await database.check()
    patient = Database(dsn=database.dsn, pool=1, statement_s=LONGEST_S)
    try:
        async with patient.write(within_s=LONGEST_S) as connection:
            return await connection.run_sync(_upgrade)
    finally:
        await patient.close()


async def revisions(database: Database) -> tuple[str, str]:
    """The database's revision, and the newest that this program knows."""
    async with database.read() as connection:
        return await connection.run_sync(_revisions)
