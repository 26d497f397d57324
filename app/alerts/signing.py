"""Standard Webhooks signatures (www.standardwebhooks.com): several of them while a secret is being rotated."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

PREFIX = "whsec_"


def key_of(secret: str) -> bytes:
    """`whsec_` + base64 is the bytes of the base64; any other string is used as it is, in UTF-8."""
    if secret.startswith(PREFIX):
        encoded = secret.removeprefix(PREFIX)
        try:
            return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def signed_headers(secrets: Sequence[str], *, message_id: str, at: datetime, body: str) -> dict[str, str]:
    """The three headers of a signed message; without secrets there is no signature."""
    headers = {"webhook-id": message_id, "webhook-timestamp": str(int(at.timestamp()))}
    if secrets:
        signatures = [Webhook(key_of(secret)).sign(message_id, at, body) for secret in secrets]
        headers["webhook-signature"] = " ".join(signatures)
    return headers


def verify(secret: str, *, headers: Mapping[str, str], body: str) -> bool:
    """Does a signature of these headers fit the body, and is the message at most five minutes old?"""
    try:
        Webhook(key_of(secret)).verify(body, dict(headers), json_parse=False)
    except (WebhookVerificationError, ValueError):
        return False
    return True
