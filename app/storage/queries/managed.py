"""What people make through the API: targets, channels, pauses, silences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert

from app.errors import ConflictError, NotFoundError
from app.storage import tables
from app.storage.queries.session import ReadSession, WriteSession

Kind = Literal["targets", "channels"]
_TABLES = {"targets": tables.api_targets, "channels": tables.api_channels}


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """For this span, nothing that matches is announced."""

    id: str
    match: Mapping[str, str]
    starts_at: datetime
    ends_at: datetime
    comment: str
    created_at: datetime


async def documents(session: ReadSession, kind: Kind) -> dict[str, dict[str, Any]]:
    """Name -> document (with the keys of the config file) of everything made by the API."""
    t = _TABLES[kind]
    rows = await session.connection.execute(select(t.c.name, t.c.document).order_by(t.c.name))
    return {row.name: row.document for row in rows.all()}


async def put_document(
    session: WriteSession, kind: Kind, name: str, document: Mapping[str, Any], *, now: datetime, new: bool = False
) -> None:
    """Make it, or replace it unless it has to be `new`.

    Raises:
        ConflictError: it has to be new, and somebody else was first.
    """
    t = _TABLES[kind]
    statement = insert(t).values(name=name, document=dict(document), created_at=now)
    if not new:
        statement = statement.on_conflict_do_update(index_elements=["name"], set_={"document": dict(document)})
    else:
        statement = statement.on_conflict_do_nothing(index_elements=["name"])
    if (await session.connection.execute(statement.returning(t.c.name))).first() is None:
        raise ConflictError(f"there is a {kind[:-1]} '{name}' already")


async def delete_document(session: WriteSession, kind: Kind, name: str) -> None:
    """Remove it, and what is remembered about it.

    Raises:
        NotFoundError: it was not made by the API.
    """
    t = _TABLES[kind]
    if (await session.connection.execute(delete(t).where(t.c.name == name).returning(t.c.name))).first() is None:
        raise NotFoundError(f"no {kind[:-1]} '{name[:80]}' was made by the API")
    forget = tables.paused_targets if kind == "targets" else tables.disabled_channels
    await session.connection.execute(delete(forget).where(forget.c.name == name))


async def pause(session: WriteSession, name: str, *, now: datetime) -> None:
    """Stop probing a target; a second time changes nothing."""
    statement = insert(tables.paused_targets).values(name=name, at=now)
    await session.connection.execute(statement.on_conflict_do_nothing(index_elements=["name"]))


async def resume(session: WriteSession, name: str) -> None:
    """Probe a target again; nothing happens when it was not paused."""
    p = tables.paused_targets
    await session.connection.execute(delete(p).where(p.c.name == name))


async def paused(session: ReadSession) -> frozenset[str]:
    """Names of the targets that were paused by somebody."""
    return frozenset((await session.connection.execute(select(tables.paused_targets.c.name))).scalars())


async def disabled_channels(session: ReadSession) -> dict[str, str]:
    """Channel -> why nothing is sent to it any more."""
    d = tables.disabled_channels
    return {row.name: row.reason for row in (await session.connection.execute(select(d.c.name, d.c.reason))).all()}


async def enable_channel(session: WriteSession, name: str) -> None:
    """Use a channel again."""
    d = tables.disabled_channels
    await session.connection.execute(delete(d).where(d.c.name == name))


async def list_silences(session: ReadSession, *, now: datetime) -> tuple[Silence, ...]:
    """Silences that have not ended, in the order of their ends."""
    s = tables.silences
    rows = await session.connection.execute(select(s).where(s.c.ends_at > now).order_by(s.c.ends_at, s.c.id))
    return tuple(
        Silence(
            id=row.id,
            match=row.match,
            starts_at=row.starts_at,
            ends_at=row.ends_at,
            comment=row.comment,
            created_at=row.created_at,
        )
        for row in rows.all()
    )


async def add_silence(session: WriteSession, silence: Silence) -> None:
    """Keep a silence."""
    await session.connection.execute(
        tables.silences.insert().values(
            id=silence.id,
            match=dict(silence.match),
            starts_at=silence.starts_at,
            ends_at=silence.ends_at,
            comment=silence.comment,
            created_at=silence.created_at,
        )
    )


async def end_silence(session: WriteSession, silence_id: str) -> None:
    """Take a silence away.

    Raises:
        NotFoundError: nobody knows it.
    """
    s = tables.silences
    if (await session.connection.execute(delete(s).where(s.c.id == silence_id).returning(s.c.id))).first() is None:
        raise NotFoundError(f"no silence '{silence_id[:80]}'")
