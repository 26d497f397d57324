"""Who changed what, and when."""

from __future__ import annotations

from fastapi import APIRouter

from app.api.params import Cursor, Limit, Listed, Reading
from app.api.problems import responses
from app.storage.queries.keys import AuditEntry, list_audit

router = APIRouter(tags=["audit"], responses=responses())


class AuditOut(Listed):
    """A list of changes."""

    items: list[AuditEntry]


@router.get("/audit", summary="Who changed what")
async def audit(session: Reading, limit: Limit = 50, cursor: Cursor = None) -> AuditOut:
    """Changes made through the API, the newest first. Needs the scope `admin`."""
    page = await list_audit(session, limit=limit, cursor=cursor)
    return AuditOut(items=list(page.items), next_cursor=page.next_cursor)
