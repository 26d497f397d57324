"""What the API has made, as documents; what the config file says is not here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from app.storage import tables
from app.storage.database import Database


@dataclass(slots=True, kw_only=True)
class Made:
    """Documents by name, as the API took them; `app.targets.load` makes targets and channels of them."""

    database: Database

    async def all(self) -> tuple[Mapping[str, Any], Mapping[str, Any], frozenset[str]]:
        """Target documents, channel documents, and names of paused targets, read at one instant."""
        async with self.database.read() as connection:
            targets = await connection.execute(select(tables.api_targets.c.name, tables.api_targets.c.document))
            channels = await connection.execute(select(tables.api_channels.c.name, tables.api_channels.c.document))
            paused = await connection.execute(select(tables.paused_targets.c.name))
            return (
                {row.name: row.document for row in targets},
                {row.name: row.document for row in channels},
                frozenset(paused.scalars()),
            )
