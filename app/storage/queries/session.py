"""A unit of work for the doors: what only reads cannot be handed to what writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.database import Database


@dataclass(frozen=True, slots=True)
class ReadSession:
    """One consistent look at the database."""

    connection: AsyncConnection


@dataclass(frozen=True, slots=True)
class WriteSession(ReadSession):
    """One transaction, committed at the edge; it can be used wherever a reading one can."""


@asynccontextmanager
async def reading(database: Database) -> AsyncIterator[ReadSession]:
    """Look at the database.

    Raises:
        UnavailableError: Postgres is away, silent or overloaded.
    """
    async with database.read() as connection:
        yield ReadSession(connection)


@asynccontextmanager
async def writing(database: Database) -> AsyncIterator[WriteSession]:
    """Change the database: everything at the end, or nothing when anything is raised.

    Raises:
        UnavailableError: Postgres is away, silent or overloaded.
    """
    async with database.write() as connection:
        yield WriteSession(connection)
