"""What waits in the outbox for others of its group, and becomes one announcement with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select, text, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage import tables
from app.verdict.outbox import DeliveryState

LOCK = 0x62616E646D7267  # "bandmrg"
_ALONE = text("SELECT pg_advisory_xact_lock(:key)")
AGAIN = timedelta(minutes=5)
"""What follows a merged announcement waits this long, and is merged in turn."""

Join = Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]]


async def merge(connection: AsyncConnection, *, now: datetime, over: int, join: Join) -> int:
    """Settle every group that is due; returns how many announcements became part of another.

    A group larger than `over` is united: its oldest takes the joined body and stands for all (`merged_into` is its own id),
    the others wait for what becomes of it. A smaller one is let go, each by itself. Until then nobody can lease them. Nothing
    that was sent once is merged: a body stays the same over its retries.
    """
    await connection.execute(_ALONE, {"key": LOCK})
    merged = 0
    for (channel, kind, group), rows in (await _waiting(connection)).items():
        storm = await _storm_since(connection, channel=channel, kind=kind, group=group, now=now)
        if storm is not None:
            await _put_off(connection, rows, until=storm + AGAIN)
        elif len(rows) > over and min(row.next_at for row in rows) <= now:
            await _unite(connection, rows, join, now=now)
            merged += len(rows) - 1
        else:
            await _let_go(connection, [row.seq for row in rows if row.next_at <= now])
    return merged


async def _waiting(connection: AsyncConnection) -> dict[tuple[str, str, str], list[Any]]:
    """What may be merged, oldest first: what is the first of its incident to be told to its channel."""
    o = tables.outbox
    whose = func.coalesce(o.c.incident_id, o.c.id)
    pending = o.c.state == DeliveryState.PENDING
    first = select(o.c.seq).where(pending).ext(distinct_on(o.c.channel, whose)).order_by(o.c.channel, whose, o.c.seq)
    found = await connection.execute(
        select(o.c.seq, o.c.id, o.c.channel, o.c.type, o.c.group_key, o.c.body, o.c.next_at)
        .where(pending, o.c.group_key.is_not(None), o.c.merged_into.is_(None), o.c.seq.in_(first))
        .order_by(o.c.seq)
    )
    groups: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for row in found.all():
        groups[row.channel, row.type, row.group_key].append(row)
    return groups


async def _storm_since(connection: AsyncConnection, *, channel: str, kind: str, group: str, now: datetime) -> datetime | None:
    """When the last merged announcement of this group was made, if that is lately."""
    o = tables.outbox
    found = await connection.execute(
        select(o.c.created_at)
        .where(
            o.c.merged_into == o.c.id,
            o.c.channel == channel,
            o.c.type == kind,
            o.c.group_key == group,
            o.c.created_at > now - AGAIN,
        )
        .order_by(o.c.seq.desc())
        .limit(1)
    )
    return found.scalar()


async def _put_off(connection: AsyncConnection, rows: Sequence[Any], *, until: datetime) -> None:
    o = tables.outbox
    if early := [row.seq for row in rows if row.next_at < until]:
        await connection.execute(update(o).where(o.c.seq.in_(early)).values(next_at=until))


async def _unite(connection: AsyncConnection, rows: Sequence[Any], join: Join, *, now: datetime) -> None:
    o, lead = tables.outbox, rows[0]
    body = dict(join([row.body for row in rows]))
    await connection.execute(update(o).where(o.c.seq.in_([row.seq for row in rows])).values(merged_into=lead.id))
    await connection.execute(update(o).where(o.c.seq == lead.seq).values(body=body, next_at=now))


async def _let_go(connection: AsyncConnection, due: Sequence[int]) -> None:
    o = tables.outbox
    if due:
        await connection.execute(update(o).where(o.c.seq.in_(due)).values(group_key=None))
