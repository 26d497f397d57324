"""API keys: only their hashes are kept, and the audit log of what was done with them.

A key has 256 random bits, so one round of SHA-256 is enough: there is nothing to guess that a slow hash would protect.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import uuid4

from sqlalchemy import select, update

from app.errors import NotFoundError
from app.storage import tables
from app.storage.queries.cursors import Page, decode_cursor, encode_cursor, page_of
from app.storage.queries.session import ReadSession, WriteSession

PREFIX = "bw_"


class Scope(StrEnum):
    """What a key may do; each includes the ones before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def allows(self, wanted: Scope) -> bool:
        """Is `wanted` among what this scope may do?"""
        order = list(Scope)
        return order.index(self) >= order.index(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """What is known of a key; its secret is not."""

    id: str
    name: str
    scope: Scope
    created_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """How the door stands for one secret: whether keys were ever made, and the key that the secret is, if it is one."""

    keyed: bool
    key: ApiKey | None = None


def hash_key(secret: str) -> bytes:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _key(row: Any) -> ApiKey:  # noqa: ANN401 - a row of the table
    return ApiKey(id=row.id, name=row.name, scope=Scope(row.scope), created_at=row.created_at, revoked_at=row.revoked_at)


async def create_key(session: WriteSession, *, name: str, scope: Scope, now: datetime) -> tuple[ApiKey, str]:
    """A new key and its secret, which nobody can show again."""
    secret = PREFIX + secrets.token_urlsafe(32)
    key = ApiKey(id=uuid4().hex[:12], name=name, scope=scope, created_at=now)
    await session.connection.execute(
        tables.api_keys.insert().values(id=key.id, name=name, scope=scope, hash=hash_key(secret), created_at=now)
    )
    return key, secret


async def list_keys(session: ReadSession) -> tuple[ApiKey, ...]:
    """All keys, the oldest first; revoked ones too."""
    k = tables.api_keys
    return tuple(_key(row) for row in (await session.connection.execute(select(k).order_by(k.c.created_at, k.c.id))).all())


async def revoke_key(session: WriteSession, key_id: str, *, now: datetime) -> ApiKey:
    """From now on, this key opens nothing. A second time changes nothing.

    Raises:
        NotFoundError: nobody knows it.
    """
    k = tables.api_keys
    await session.connection.execute(update(k).where(k.c.id == key_id, k.c.revoked_at.is_(None)).values(revoked_at=now))
    row = (await session.connection.execute(select(k).where(k.c.id == key_id))).first()
    if row is None:
        raise NotFoundError(f"no key '{key_id[:80]}'", near=[key.id for key in await list_keys(session)][:5])
    return _key(row)


async def look_up(session: ReadSession, secret: str | None) -> Door:
    """Whom a secret belongs to. Keys that were revoked count as made: revoking the last one does not open the door."""
    k = tables.api_keys
    keyed = (await session.connection.execute(select(k.c.id).limit(1))).first() is not None
    if not keyed or secret is None or not secret.startswith(PREFIX):
        return Door(keyed=keyed)
    wanted = hash_key(secret)
    row = (await session.connection.execute(select(k).where(k.c.hash == wanted, k.c.revoked_at.is_(None)))).first()
    if row is None or not hmac.compare_digest(row.hash, wanted):
        return Door(keyed=True)
    return Door(keyed=True, key=_key(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One change that somebody asked for."""

    at: datetime
    actor: str
    action: str
    object: str
    detail: dict[str, Any]


async def list_audit(session: ReadSession, *, limit: int, cursor: str | None = None) -> Page[AuditEntry]:
    """A page of changes, the newest first.

    Raises:
        UsageError: the cursor is none of a list of changes.
    """
    a = tables.audit
    query = select(a).order_by(a.c.id.desc()).limit(limit + 1)
    if cursor is not None:
        query = query.where(a.c.id < decode_cursor(cursor, int)[0])
    rows = (await session.connection.execute(query)).all()
    found = [AuditEntry(at=row.at, actor=row.actor, action=row.action, object=row.object, detail=row.detail) for row in rows]
    return page_of(found, limit=limit, cursor=encode_cursor(rows[min(limit, len(rows)) - 1].id) if rows else None)


async def write_audit(
    session: WriteSession, *, at: datetime, actor: str, action: str, subject: str, detail: dict[str, Any] | None = None
) -> None:
    """Note a change that somebody asked for, in the transaction that makes it. `detail` holds no secrets."""
    await session.connection.execute(
        tables.audit.insert().values(at=at, actor=actor, action=action, object=subject, detail=detail or {})
    )
