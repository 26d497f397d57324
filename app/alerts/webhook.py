"""The signed webhook: Standard Webhooks headers around the contract's body."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import httpx2

from app.alerts.answer import Answer, post, to_json
from app.alerts.signing import signed_headers
from app.verdict.outbox import Announcement


async def send_webhook(
    client: httpx2.AsyncClient, url: str, message: Announcement, *, secrets: Sequence[str], now: datetime
) -> Answer:
    """One attempt; id and body are the same over all attempts, time and signature are of this one."""
    body = to_json(message.body)
    headers = signed_headers(secrets, message_id=message.id, at=now, body=body.decode())
    return await post(client, url, body, headers)
