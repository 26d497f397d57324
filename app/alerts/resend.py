"""Alertmanager forgets: what stands is posted again every minute, and what ended for a quarter of an hour more.

A firing alert ends by itself after four minutes without a post, so an Alertmanager that lost us, or was restarted, neither
keeps an alert for ever nor loses one for longer than a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from app.alerts.ports import Standing
from app.alerts.sending import Sender
from app.clock import Clock
from app.errors import BandwatchError
from app.targets.model import Channel, ChannelKind, Config

log = structlog.get_logger()

EVERY_S = 60.0
ENDED_KEPT = timedelta(minutes=15)
"""How long an end is posted again: an Alertmanager that was away for less hears of it."""


@dataclass(slots=True, kw_only=True)
class Resender:
    """Posts again what was announced to each Alertmanager channel. Any number may run; posts are idempotent."""

    standing: Standing
    config: Callable[[], Config]
    clock: Clock

    async def once(self, sender: Sender) -> None:
        """One round over all channels at once. Nobody's failure is anybody else's."""
        channels = [each for each in self.config().channels.values() if each.kind is ChannelKind.ALERTMANAGER]
        async with asyncio.TaskGroup() as group:
            for channel in channels:
                group.create_task(self._to(channel, sender))

    async def _to(self, channel: Channel, sender: Sender) -> None:
        now = self.clock.now()
        try:
            bodies = await self.standing.standing(channel.name, ended_since=now - ENDED_KEPT)
        except BandwatchError as error:
            log.warning("standing_not_read", channel=channel.name, error=str(error))
            return
        if not bodies:
            return
        answer = await sender.resend(channel, bodies, now=now)
        if not answer.ok:
            log.warning("resend_failed", channel=channel.name, status=answer.status, answer=answer.text)
