"""How a message leaves: one function a kind of channel, each with an answer that says whether it arrived."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx2

from app.alerts.signing import signed_headers
from app.errors import BandwatchError
from app.targets.model import Channel, ChannelKind, SecretRef
from app.verdict.outbox import Announcement

ATTEMPT_S = 10.0
KEPT_CHARS = 300

Resolve = Callable[[SecretRef], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one attempt. `retry_after`: the receiver's own word; `gone`: it never wants to hear from us again."""

    ok: bool
    status: int | None
    text: str
    retry_after: str | None = None
    gone: bool = False


@dataclass(slots=True, kw_only=True)
class Sender:
    """Sends to every kind of channel.

    Args:
        client: without redirects; shared by all channels.
        resolve: the secret of a reference, when it is used.
        clean: takes secrets out of what is kept of an answer.
    """

    client: httpx2.AsyncClient
    resolve: Resolve
    clean: Callable[[str], str]

    async def send(self, channel: Channel, message: Announcement, *, now: datetime) -> Answer:
        """One attempt, bounded in time. Never raises for what the receiver does."""
        try:
            async with asyncio.timeout(ATTEMPT_S):
                match channel.kind:
                    case ChannelKind.WEBHOOK:
                        return await self._webhook(channel, message, now)
                    case ChannelKind.ALERTMANAGER:
                        return await self._alertmanager(channel, message)
                    case ChannelKind.APPRISE:
                        return await self._apprise(channel, message)
        except TimeoutError:
            return Answer(ok=False, status=None, text=f"no answer within {ATTEMPT_S:g} s")
        except (BandwatchError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            return Answer(ok=False, status=None, text=self.clean(f"{type(error).__name__}: {error}")[:KEPT_CHARS])

    def _url(self, url: str | SecretRef) -> str:
        return self.resolve(url) if isinstance(url, SecretRef) else url

    async def _webhook(self, channel: Channel, message: Announcement, now: datetime) -> Answer:
        body = json.dumps(message.body, separators=(",", ":"), ensure_ascii=False)
        secrets = [self.resolve(reference) for reference in channel.secrets]
        headers = signed_headers(secrets, message_id=message.id, at=now, body=body)
        return await self._post(self._url(channel.urls[0]), body, headers)

    async def _alertmanager(self, channel: Channel, message: Announcement) -> Answer:
        """All peers get it; one yes is enough, for they tell each other."""
        body = json.dumps([alert_of(message.body)])
        answers = [await self._post(f"{self._url(url).rstrip('/')}/api/v2/alerts", body, {}) for url in channel.urls]
        return next((answer for answer in answers if answer.ok), answers[-1])

    async def _apprise(self, channel: Channel, message: Announcement) -> Answer:
        url = self._url(channel.urls[0])
        data = message.body.get("data", {})
        title = f"{message.type.replace('.', ' ')}"
        sent = await asyncio.to_thread(_notify, url, title, str(data.get("summary") or title))
        return Answer(ok=sent, status=None, text="sent" if sent else "the service did not take it")

    async def _post(self, url: str, body: str, headers: Mapping[str, str]) -> Answer:
        response = await self.client.post(
            url, content=body.encode(), headers={"content-type": "application/json", "user-agent": "bandwatch", **headers}
        )
        return Answer(
            ok=200 <= response.status_code < 300,
            status=response.status_code,
            text=self.clean(response.text[: 4 * KEPT_CHARS])[:KEPT_CHARS],
            retry_after=response.headers.get("retry-after") if response.status_code in {429, 503} else None,
            gone=response.status_code == 410,
        )


def _notify(url: str, title: str, text: str) -> bool:
    import apprise  # 15 MB of code that most installations never need

    sender = apprise.Apprise()
    return bool(sender.add(url) and sender.notify(title=title, body=text))


def alert_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """An Alertmanager alert of a webhook body."""
    incident = body.get("data", {}).get("incident", {})
    resolved = incident.get("state") == "resolved"
    told = ("target", "provider", "model", "location", "rule", "severity")
    labels = {"alertname": "Bandwatch", **{name: str(incident[name]) for name in told if incident.get(name)}}
    return {
        "labels": labels,
        "annotations": {"summary": str(body.get("data", {}).get("summary", ""))},
        "startsAt": incident.get("opened_at"),
        **({"endsAt": incident.get("resolved_at")} if resolved else {}),
        "generatorURL": body.get("data", {}).get("links", {}).get("incident", ""),
    }
