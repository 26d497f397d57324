"""The courier: leases announcements, delivers them at least once and in order, and never lets one receiver delay another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import structlog

from app.alerts.answer import Answer
from app.alerts.grouping import join
from app.alerts.guard import Guard
from app.alerts.ports import Outbox
from app.alerts.resend import EVERY_S, Resender
from app.alerts.sending import ATTEMPT_S, Post, Sender
from app.alerts.transport import Clients
from app.clock import Clock
from app.errors import BandwatchError
from app.measurement.limits import span_s
from app.secrets import Redactor, Secrets
from app.targets.model import Channel, Config
from app.verdict.outbox import Attempt, Leased

log = structlog.get_logger()

POLL_S = 1.0
BATCH = 50
LEASE_S = 3 * ATTEMPT_S
GIVE_UP = timedelta(hours=24)
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 900.0
AT_ONCE = 4
"""Deliveries to one channel at the same time."""


def wait_s(attempts: int, *, rng: Random) -> float:
    """Jittered exponential back-off: between half and all of 2 s x 2^(attempts - 1), at most 15 minutes."""
    full: float = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempts - 1, 20))
    return full * (0.5 + rng.random() / 2)


@dataclass(slots=True, kw_only=True)
class Courier:
    """Delivers until told to stop. Any number may run: leases keep them apart.

    Args:
        outbox: where announcements wait.
        config: channels as they are now.
        owner: name of this courier on its leases.
    """

    outbox: Outbox
    config: Callable[[], Config]
    secrets: Secrets
    redactor: Redactor
    clock: Clock
    rng: Random
    owner: str
    sender: Sender | None = None
    _busy: dict[str, asyncio.Semaphore] = field(default_factory=dict)
    _held: set[str] = field(default_factory=set)

    async def run(self, stop: asyncio.Event) -> None:
        """Look every second; a look that fails is looked again. On stop, what runs is finished and the rest given back."""
        sender = self.sender or self._post()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._resend(sender, stop))
                while not stop.is_set():
                    for leased in await self._lease():
                        self._held.add(leased.announcement.id)
                        group.create_task(self._deliver(sender, leased))
                    await _pause(POLL_S, stop)
        finally:
            await self._give_back()
            await sender.aclose()

    def _post(self) -> Post:
        clients = Clients(guard=Guard(lambda: self.config().allow_networks))
        return Post(clients=clients, resolve=self.secrets.resolve, clean=self.redactor.clean)

    async def _lease(self) -> list[Leased]:
        now, room = self.clock.now(), max(0, BATCH - len(self._held))
        try:
            await self.outbox.merge(now=now, over=self.config().thresholds.group_over, join=join)
            return await self.outbox.lease(owner=self.owner, now=now, limit=room, lease_s=LEASE_S)
        except BandwatchError as error:
            log.warning("outbox_not_leased", error=str(error))
            return []

    async def _resend(self, sender: Sender, stop: asyncio.Event) -> None:
        resender = Resender(standing=self.outbox, config=self.config, clock=self.clock)
        while not stop.is_set():
            await resender.once(sender)
            await _pause(EVERY_S, stop)

    async def _deliver(self, sender: Sender, leased: Leased) -> None:
        message = leased.announcement
        try:
            channel = self.config().channels.get(message.channel)
            gate = self._busy.setdefault(message.channel, asyncio.Semaphore(AT_ONCE))
            async with gate:
                if self.clock.now() >= leased.leased_until - timedelta(seconds=ATTEMPT_S):
                    return  # the lease would end before the answer; somebody takes it again
                await self._attempt(sender, channel, leased)
        except BandwatchError as error:
            log.warning("delivery_not_noted", message=message.id, channel=message.channel, error=str(error))
        finally:
            self._held.discard(message.id)

    async def _attempt(self, sender: Sender, channel: Channel | None, leased: Leased) -> None:
        message = leased.announcement
        began, mono = self.clock.now(), self.clock.monotonic_ns()
        if channel is None:
            answer = Answer(ok=False, status=None, text="there is no such channel in the configuration")
        elif message.channel in await self.outbox.disabled():
            answer = Answer(ok=False, status=None, text="the channel is disabled: its receiver answered 410", gone=True)
        else:
            answer = await sender.send(channel, message, now=began)
        attempt = Attempt(
            at=began,
            status=answer.status,
            latency_s=(self.clock.monotonic_ns() - mono) / 1e9,
            response=answer.text,
        )
        await self._note(leased, answer, attempt)

    async def _note(self, leased: Leased, answer: Answer, attempt: Attempt) -> None:
        message, now = leased.announcement, self.clock.now()
        if answer.ok:
            await self.outbox.delivered(message.id, attempt)
            log.info("delivered", message=message.id, channel=message.channel, type=message.type, attempts=leased.attempts)
            return
        log.warning("delivery_failed", message=message.id, channel=message.channel, status=answer.status, answer=answer.text)
        if answer.gone:
            await self.outbox.disable_channel(message.channel, "its receiver answered 410 Gone", now=now)
            await self.outbox.dead(message.id, attempt)
        elif now - message.created_at >= GIVE_UP:
            await self.outbox.dead(message.id, attempt)
        else:
            await self.outbox.retry(message.id, self._next(leased, answer, now), attempt)

    def _next(self, leased: Leased, answer: Answer, now: datetime) -> datetime:
        wait = wait_s(leased.attempts, rng=self.rng)
        if answer.retry_after is not None and (told := span_s(answer.retry_after, now=now)) is not None:
            wait = max(wait, min(told, LONGEST_WAIT_S * 4))
        return now + timedelta(seconds=wait)

    async def _give_back(self) -> None:
        try:
            await self.outbox.release(owner=self.owner)
        except BandwatchError:
            log.warning("leases_not_released", owner=self.owner)


async def _pause(seconds: float, stop: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
