"""The alert outbox: rows written with what they announce, leased by couriers, marked when the receiver said yes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import msgspec
from sqlalchemy import and_, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage import tables
from app.storage.database import QUICK_S, Database
from app.storage.merging import Join, merge
from app.verdict.model import IncidentState
from app.verdict.outbox import Announcement, Attempt, DeliveryState, Leased

FAILING_S = 900.0
FAILING_TRIES = 3
"""A channel fails when an announcement has waited so long and was tried so often."""
_LEASE = text("""
WITH first AS (
  SELECT DISTINCT ON (channel, coalesce(incident_id, id)) * FROM outbox
  WHERE state = 'pending' ORDER BY channel, coalesce(incident_id, id), seq
), free AS (
  SELECT seq, channel, row_number() OVER (PARTITION BY channel ORDER BY seq) AS place FROM first
  WHERE next_at <= :now AND (leased_until IS NULL OR leased_until <= :now) AND (group_key IS NULL OR merged_into = id)
), mine AS (
  SELECT o.seq FROM outbox o JOIN free ON free.seq = o.seq
  WHERE free.place <= :each - coalesce((CAST(:running AS jsonb) ->> free.channel)::integer, 0)
    AND o.state = 'pending' AND (o.leased_until IS NULL OR o.leased_until <= :now)
  FOR UPDATE OF o SKIP LOCKED
)
UPDATE outbox SET lease_owner = :owner, leased_until = :until, attempts = attempts + 1
FROM mine WHERE outbox.seq = mine.seq
RETURNING outbox.seq, id, channel, type, body::text AS body, incident_id, created_at, attempts
""")
_COUNT = text("""
INSERT INTO delivery_counts VALUES (:channel, :result, 1)
ON CONFLICT (channel, result) DO UPDATE SET n = delivery_counts.n + 1
""")


async def add(connection: AsyncConnection, announcements: Sequence[Announcement]) -> None:
    """Put announcements into the outbox, in the transaction of what they announce. One that is there already stays as it is."""
    for each in announcements:
        statement = insert(tables.outbox).values(
            id=each.id,
            channel=each.channel,
            type=each.type,
            body=dict(each.body),
            incident_id=each.incident_id,
            created_at=each.created_at,
            next_at=each.not_before or each.created_at,
            group_key=each.group,
        )
        await connection.execute(statement.on_conflict_do_nothing(index_elements=["id"]))


@dataclass(slots=True, kw_only=True)
class Outbox:
    """What couriers ask of the outbox."""

    database: Database

    async def put(self, announcements: Sequence[Announcement]) -> None:
        """Add announcements that stand on their own, such as a channel's test."""
        async with self.database.write() as connection:
            await add(connection, announcements)

    async def merge(self, *, now: datetime, over: int, join: Join) -> int:
        """Unite or let go what waited for its group; returns how many announcements became part of another."""
        async with self.database.write() as connection:
            return await merge(connection, now=now, over=over, join=join)

    async def standing(self, channel: str, *, ended_since: datetime) -> list[Mapping[str, Any]]:
        """What was last said to a channel of each incident that is open, or that ended after `ended_since`."""
        o, i = tables.outbox, tables.incidents
        query = (
            select(o.c.body)
            .join_from(o, i, i.c.id == o.c.incident_id)
            .where(o.c.channel == channel, or_(i.c.state == IncidentState.OPEN, i.c.resolved_at > ended_since))
            .ext(distinct_on(o.c.incident_id))
            .order_by(o.c.incident_id, o.c.seq.desc())
        )
        async with self.database.read(within_s=QUICK_S) as connection:
            return list((await connection.execute(query)).scalars())

    async def lease(
        self, *, owner: str, now: datetime, limit: int, lease_s: float, running: Mapping[str, int] = MappingProxyType({})
    ) -> list[Leased]:
        """Take up to `limit` due announcements of each channel, less those that are `running` to it, for `lease_s` seconds;
        nobody else gets them meanwhile.

        Order: of one (incident, channel), only the oldest that is pending can be taken. What still waits for its group, or
        became part of another announcement, cannot.
        """
        until = now + timedelta(seconds=lease_s)
        known = {
            "owner": owner,
            "now": now,
            "until": until,
            "each": limit,
            "running": msgspec.json.encode(dict(running)).decode(),
        }
        async with self.database.write() as connection:
            rows = (await connection.execute(_LEASE, known)).all()
        return [
            Leased(
                announcement=Announcement(
                    id=row.id,
                    channel=row.channel,
                    type=row.type,
                    body=msgspec.json.decode(row.body),
                    incident_id=row.incident_id,
                    created_at=row.created_at,
                ),
                attempts=row.attempts,
                leased_until=until,
            )
            for row in sorted(rows, key=lambda row: row.seq)
        ]

    async def delivered(self, announcement_id: str, attempt: Attempt) -> None:
        """The receiver said yes."""
        await self._finish(announcement_id, attempt, DeliveryState.DELIVERED)

    async def dead(self, announcement_id: str, attempt: Attempt) -> None:
        """Given up; it can be replayed."""
        await self._finish(announcement_id, attempt, DeliveryState.DEAD)

    async def retry(self, announcement_id: str, at: datetime, attempt: Attempt) -> None:
        """Not delivered; try again at `at`."""
        o = tables.outbox
        async with self.database.write() as connection:
            await _note(connection, announcement_id, attempt)
            put_off = await connection.execute(
                update(o)
                .where(o.c.id == announcement_id, o.c.state == DeliveryState.PENDING)
                .values(next_at=at, lease_owner=None, leased_until=None)
                .returning(o.c.channel)
            )
            await _count(connection, put_off.scalar(), "retried")

    async def replay(self, announcement_id: str, *, now: datetime) -> bool:
        """Make a dead or delivered announcement pending again, under the same id; False when nobody knows it."""
        o = tables.outbox
        async with self.database.write() as connection:
            done = await connection.execute(
                update(o).where(o.c.id == announcement_id).values(**pending_again(now)).returning(o.c.id)
            )
            return done.first() is not None

    async def release(self, *, owner: str) -> None:
        """Give back what a courier still holds, when it stops."""
        o = tables.outbox
        async with self.database.write() as connection:
            await connection.execute(
                update(o)
                .where(and_(o.c.lease_owner == owner, o.c.state == DeliveryState.PENDING))
                .values(lease_owner=None, leased_until=None)
            )

    async def disable_channel(self, name: str, reason: str, *, now: datetime) -> None:
        """Remember that a channel must not be used (its receiver said 410)."""
        async with self.database.write() as connection:
            statement = insert(tables.disabled_channels).values(name=name, at=now, reason=reason)
            await connection.execute(statement.on_conflict_do_nothing(index_elements=["name"]))

    async def enable_channel(self, name: str) -> None:
        """Use a channel again."""
        async with self.database.write() as connection:
            await connection.execute(tables.disabled_channels.delete().where(tables.disabled_channels.c.name == name))

    async def disabled(self) -> frozenset[str]:
        """Names of channels that must not be used."""
        async with self.database.read(within_s=QUICK_S) as connection:
            return frozenset((await connection.execute(select(tables.disabled_channels.c.name))).scalars())

    async def oldest_pending(self) -> tuple[datetime | None, int]:
        """When the oldest pending announcement was made, and how many are dead."""
        o = tables.outbox
        async with self.database.read(within_s=QUICK_S) as connection:
            oldest = (
                await connection.execute(select(func.min(o.c.created_at)).where(o.c.state == DeliveryState.PENDING))
            ).scalar()
            dead = (await connection.execute(select(func.count()).where(o.c.state == DeliveryState.DEAD))).scalar_one()
        return oldest, dead

    async def channel_troubles(self, *, now: datetime) -> Mapping[str, str]:
        """Channel -> what is the matter with it (`channel_troubles` below)."""
        async with self.database.read(within_s=QUICK_S) as connection:
            return await channel_troubles(connection, now=now)

    async def _finish(self, announcement_id: str, attempt: Attempt, state: DeliveryState) -> None:
        """What the receiver said yes to is delivered, whoever else gave it up; nothing else is finished twice."""
        o = tables.outbox
        done = {"state": state, "finished_at": attempt.at, "lease_owner": None, "leased_until": None}
        over = {DeliveryState.DELIVERED, state}
        async with self.database.write() as connection:
            await _note(connection, announcement_id, attempt)
            finished = await connection.execute(
                update(o)
                .where(or_(o.c.id == announcement_id, o.c.merged_into == announcement_id), o.c.state.not_in(over))
                .values(**done, attempts=func.greatest(o.c.attempts, 1))
                .returning(o.c.id, o.c.channel)
            )
            channel = next((row.channel for row in finished.all() if row.id == announcement_id), None)
            await _count(connection, channel, state)


async def channel_troubles(connection: AsyncConnection, *, now: datetime) -> Mapping[str, str]:
    """Channel -> `channel_disabled` or `channel_fails`, of those that take nothing: an announcement has waited for
    `FAILING_S` and was tried `FAILING_TRIES` times.
    """
    o = tables.outbox
    waiting = (
        select(o.c.channel)
        .where(
            o.c.state == DeliveryState.PENDING,
            o.c.attempts >= FAILING_TRIES,
            o.c.created_at <= now - timedelta(seconds=FAILING_S),
        )
        .distinct()
    )
    failing = dict.fromkeys((await connection.execute(waiting)).scalars(), "channel_fails")
    disabled = (await connection.execute(select(tables.disabled_channels.c.name))).scalars()
    return {**failing, **dict.fromkeys(disabled, "channel_disabled")}


async def _count(connection: AsyncConnection, channel: str | None, result: str) -> None:
    if channel is not None:
        await connection.execute(_COUNT, {"channel": channel, "result": str(result)})


def pending_again(now: datetime) -> dict[str, Any]:
    """The columns of an announcement that is to be delivered once more: by itself, at once, with a day to do it in."""
    return {
        "state": DeliveryState.PENDING,
        "created_at": now,
        "next_at": now,
        "attempts": 0,
        "lease_owner": None,
        "leased_until": None,
        "finished_at": None,
        "group_key": None,
        "merged_into": None,
    }


async def _note(connection: AsyncConnection, announcement_id: str, attempt: Attempt) -> None:
    await connection.execute(
        insert(tables.delivery_attempts).values(
            outbox_id=announcement_id,
            at=attempt.at,
            status=attempt.status,
            latency_s=attempt.latency_s,
            response=attempt.response,
        )
    )
