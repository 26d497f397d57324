"""How far the grid has been walked; shared by all schedulers, kept over restarts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from app.storage import tables
from app.storage.database import Database


@dataclass(slots=True, kw_only=True)
class ScheduleMark:
    """One row."""

    database: Database

    async def load(self) -> tuple[datetime | None, Sequence[str]]:
        """The instant, and the keys known then; (None, ()) before the first walk."""
        async with self.database.read() as connection:
            row = (await connection.execute(select(tables.schedule_mark.c.at, tables.schedule_mark.c["keys"]))).first()
        return (None, ()) if row is None else (row.at, row.keys)

    async def save(self, at: datetime, keys: Sequence[str]) -> None:
        """Remember both; an older instant never replaces a newer one by more than a clock step."""
        statement = insert(tables.schedule_mark).values(one=True, at=at, keys=list(keys))
        async with self.database.write() as connection:
            await connection.execute(
                statement.on_conflict_do_update(index_elements=["one"], set_={"at": at, "keys": list(keys)})
            )
