"""How a message leaves: one attempt over the channel's own way, bounded in time, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from app.alerts.alertmanager import send_alertmanager
from app.alerts.answer import FAILURES, Answer, excerpt
from app.alerts.notify import Notifier
from app.alerts.transport import Clients
from app.alerts.webhook import send_webhook
from app.targets.model import Channel, ChannelKind, SecretRef
from app.verdict.outbox import Announcement

ATTEMPT_S = 10.0


class Sender(Protocol):
    """Makes one attempt."""

    async def send(self, channel: Channel, message: Announcement, *, now: datetime) -> Answer:
        """Never raises for what the receiver does."""
        ...

    async def resend(self, channel: Channel, bodies: Sequence[Mapping[str, Any]], *, now: datetime) -> Answer:
        """Post to an Alertmanager again what still stands. Never raises for what it does."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


@dataclass(slots=True, kw_only=True)
class Post:
    """Sends over every kind of channel.

    Args:
        clients: HTTP, guarded where the channel was made by the API.
        resolve: the secret of a reference, when it is used.
        clean: takes secrets out of what is kept of an answer.
        attempt_s: the longest that an attempt may take.
    """

    clients: Clients
    resolve: Callable[[SecretRef], str]
    clean: Callable[[str], str]
    attempt_s: float = ATTEMPT_S
    notifier: Notifier = field(default_factory=Notifier)

    async def send(self, channel: Channel, message: Announcement, *, now: datetime) -> Answer:
        """One attempt. Never raises for what the receiver does."""
        return await self._bounded(lambda: self._send(channel, message, now))

    async def resend(self, channel: Channel, bodies: Sequence[Mapping[str, Any]], *, now: datetime) -> Answer:
        """Post to an Alertmanager again what still stands. Never raises for what it does."""
        return await self._bounded(
            lambda: send_alertmanager(self.clients.client(channel), self._urls(channel), bodies, now=now)
        )

    async def _bounded(self, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
        try:
            async with asyncio.timeout(self.attempt_s):
                answer = await attempt()
        except TimeoutError:
            answer = Answer(ok=False, text=f"no answer within {self.attempt_s:g} s")
        except FAILURES as error:
            answer = Answer(ok=False, text=f"{type(error).__name__}: {error}")
        return answer.cleaned(lambda text: excerpt(text, self.clean))

    def _urls(self, channel: Channel) -> tuple[str, ...]:
        urls = tuple(self.resolve(url) if isinstance(url, SecretRef) else url for url in channel.urls)
        if channel.kind is not ChannelKind.APPRISE:
            self.clients.check(channel, urls)
        return urls

    async def _send(self, channel: Channel, message: Announcement, now: datetime) -> Answer:
        urls = self._urls(channel)
        match channel.kind:
            case ChannelKind.WEBHOOK:
                secrets = tuple(map(self.resolve, channel.secrets))
                return await send_webhook(self.clients.client(channel), urls[0], message, secrets=secrets, now=now)
            case ChannelKind.ALERTMANAGER:
                return await send_alertmanager(self.clients.client(channel), urls, [message.body], now=now)
            case ChannelKind.APPRISE:
                return await self.notifier.send(channel, urls, message)

    async def aclose(self) -> None:
        """Close connections."""
        await self.clients.aclose()
