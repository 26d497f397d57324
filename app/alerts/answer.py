"""What came of one attempt, and how an HTTP answer is read: its status decides, and only the start of its text is kept."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpcore2
import httpx2

from app.errors import BandwatchError

FAILURES = (
    BandwatchError,
    OSError,
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
    httpx2.HTTPError,
    httpx2.InvalidURL,
)
"""What goes wrong with a receiver or with our settings for it; it is an answer, and no error of the courier."""

READ_BYTES = 4096
KEPT_CHARS = 300
_HONOURS_RETRY_AFTER = frozenset({429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one attempt. `retry_after`: the receiver's own word; `gone`: it never wants to hear from us again;
    `hopeless`: there is nobody to try again with.
    """

    ok: bool
    status: int | None = None
    text: str = ""
    retry_after: str | None = None
    gone: bool = False
    hopeless: bool = False

    def cleaned(self, clean: Callable[[str], str]) -> Answer:
        """The same with a text that may be kept."""
        return replace(self, text=clean(self.text))


def excerpt(text: str, clean: Callable[[str], str]) -> str:
    """The start of a text without secrets. Where the text was cut in the middle of a word, that word goes: half a secret
    is not recognised.
    """
    cut = re.sub(r"\S*\Z", "", text[:READ_BYTES]) if len(text) >= READ_BYTES else text
    return clean(cut)[:KEPT_CHARS]


def to_json(value: object) -> bytes:
    """Compact JSON in UTF-8."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


async def post(client: httpx2.AsyncClient, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    """POST once. Success is 2xx and nothing else; what happens after the status line does not change it.

    Raises:
        One of FAILURES: no answer came.
    """
    sent: dict[str, Any] = {
        "content-type": "application/json",
        "user-agent": "bandwatch",
        "accept-encoding": "identity",
        **headers,
    }
    async with client.stream("POST", url, content=body, headers=sent) as response:
        text = ""
        with contextlib.suppress(httpx2.HTTPError, httpcore2.NetworkError, httpcore2.ProtocolError):
            text = await _start_of(response)
    status = response.status_code
    if 300 <= status < 400:
        text = f"it answered with a redirect, which is not followed. {text}"
    return Answer(
        ok=200 <= status < 300,
        status=status,
        text=text,
        retry_after=response.headers.get("retry-after") if status in _HONOURS_RETRY_AFTER else None,
        gone=status == 410,
    )


async def _start_of(response: httpx2.Response) -> str:
    start = b""
    async for part in response.aiter_raw():
        start += part
        if len(start) >= READ_BYTES:
            break
    return start[:READ_BYTES].decode("utf-8", "replace")
