"""What the API has made, as documents; what the config file says is not here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import func, select

from app.storage import tables
from app.storage.database import QUICK_S, Database
from app.targets.model import Match, Silence


@dataclass(slots=True, kw_only=True)
class Made:
    """Documents by name, as the API took them; `app.targets.load` makes targets and channels of them."""

    database: Database

    async def all(self) -> tuple[Mapping[str, Any], Mapping[str, Any], frozenset[str]]:
        """Target documents, channel documents, and names of paused targets, read at one instant."""
        async with self.database.read(within_s=QUICK_S) as connection:
            targets = await connection.execute(select(tables.api_targets.c.name, tables.api_targets.c.document))
            channels = await connection.execute(select(tables.api_channels.c.name, tables.api_channels.c.document))
            paused = await connection.execute(select(tables.paused_targets.c.name))
            return (
                {row.name: row.document for row in targets},
                {row.name: row.document for row in channels},
                frozenset(paused.scalars()),
            )

    async def silences(self) -> tuple[Silence, ...]:
        """Silences that have not ended."""
        s = tables.silences
        async with self.database.read(within_s=QUICK_S) as connection:
            rows = (await connection.execute(select(s).where(s.c.ends_at > func.now()).order_by(s.c.id))).all()
        known = {field.name for field in fields(Match)}
        return tuple(
            Silence(
                match=Match(**{name: value for name, value in row.match.items() if name in known}),
                starts_at=row.starts_at,
                ends_at=row.ends_at,
            )
            for row in rows
        )
