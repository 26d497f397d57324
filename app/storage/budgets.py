"""Budgets of a UTC day: reserved before a call, atomically over all workers, and corrected to what was used."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from sqlalchemy import and_, func, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage import tables
from app.targets.model import Budget, Target


def scopes_of(target: Target) -> Mapping[str, Budget]:
    """The budgets that bind a target, in one order for everybody (no deadlock)."""
    both = {f"provider:{target.provider.name}": target.provider.budget, f"target:{target.name}": target.budget}
    return {scope: budget for scope, budget in sorted(both.items()) if budget != Budget()}


async def reserve(connection: AsyncConnection, scope: str, budget: Budget, *, tokens: int, usd: float, day: date) -> bool:
    """Add to what is spent of one budget; False, and nothing is added, where it has no room."""
    b = tables.budgets
    statement = insert(b).values(scope=scope, day=day, tokens=tokens, usd=usd)
    room = []
    if budget.tokens_per_day is not None:
        if tokens > budget.tokens_per_day:
            return False
        room.append(b.c.tokens + tokens <= budget.tokens_per_day)
    if budget.usd_per_day is not None:
        if usd > budget.usd_per_day:
            return False
        room.append(b.c.usd + usd <= budget.usd_per_day)
    done = await connection.execute(
        statement.on_conflict_do_update(
            index_elements=["scope", "day"],
            set_={"tokens": b.c.tokens + tokens, "usd": b.c.usd + usd},
            where=and_(*room),
        ).returning(b.c.scope)
    )
    return done.first() is not None


async def correct(connection: AsyncConnection, scopes: Mapping[str, Budget], *, tokens: int, usd: float, day: date) -> None:
    """Add a difference, up or down, to what is spent; it never falls below nothing."""
    b = tables.budgets
    await connection.execute(
        update(b)
        .where(b.c.scope.in_(sorted(scopes)), b.c.day == day)
        .values(tokens=func.greatest(b.c.tokens + tokens, 0), usd=func.greatest(b.c.usd + usd, 0.0))
    )
