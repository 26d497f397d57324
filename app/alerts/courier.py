"""The courier: leases announcements, delivers them at least once and in order, and never lets one receiver delay another."""

from __future__ import annotations

import asyncio
from collections import Counter
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
from app.targets.model import Config
from app.verdict.outbox import Announcement, Attempt, Leased

log = structlog.get_logger()

POLL_S = 1.0
LEASE_S = 3 * ATTEMPT_S
GIVE_UP = timedelta(hours=24)
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 900.0
AT_ONCE = 4
"""Deliveries to one channel at the same time; a channel that hangs holds no more of the courier than these."""
UNKNOWN_FOR = timedelta(minutes=15)
"""How long a message waits for a channel that is not configured: a config may be on its way."""


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
    _held: Counter[str] = field(default_factory=Counter)
    """Channel -> deliveries to it that run."""
    _merged: datetime | None = None
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, stop: asyncio.Event) -> None:
        """Look every second, and at once when a delivery has ended; a look that fails is looked again. On stop,
        what runs is finished and the rest given back.
        """
        sender = self.sender or self._post()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._resend(sender, stop))
                while not stop.is_set():
                    self._freed.clear()
                    for leased in await self._lease():
                        self._held[leased.announcement.channel] += 1
                        group.create_task(self._deliver(sender, leased))
                    await _first_of(POLL_S, stop, self._freed)
        finally:
            await self._give_back()
            await sender.aclose()

    def _post(self) -> Post:
        clients = Clients(guard=Guard(lambda: self.config().allow_networks))
        return Post(clients=clients, resolve=self.secrets.resolve, clean=self.redactor.clean)

    async def _lease(self) -> list[Leased]:
        now = self.clock.now()
        try:
            if self._merged is None or abs((now - self._merged).total_seconds()) >= POLL_S:
                await self.outbox.merge(now=now, over=self.config().thresholds.group_over, join=join)
                self._merged = now
            return await self.outbox.lease(owner=self.owner, now=now, limit=AT_ONCE, lease_s=LEASE_S, running=self._held)
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
            await self._attempt(sender, leased)
        except BandwatchError as error:
            log.warning("delivery_not_noted", message=message.id, channel=message.channel, error=str(error))
        finally:
            self._held[message.channel] -= 1
            self._freed.set()

    async def _attempt(self, sender: Sender, leased: Leased) -> None:
        began, mono = self.clock.now(), self.clock.monotonic_ns()
        answer = await self._answer(sender, leased.announcement, began)
        latency_s = (self.clock.monotonic_ns() - mono) / 1e9
        await self._note(leased, answer, Attempt(at=began, status=answer.status, latency_s=latency_s, response=answer.text))

    async def _answer(self, sender: Sender, message: Announcement, now: datetime) -> Answer:
        channel = self.config().channels.get(message.channel)
        if channel is None:
            waited = now - message.created_at
            return Answer(ok=False, text="there is no such channel in the configuration", hopeless=waited >= UNKNOWN_FOR)
        if message.channel in await self.outbox.disabled():
            return Answer(ok=False, text="the channel is disabled: its receiver answered 410", hopeless=True)
        try:
            return await sender.send(channel, message, now=now)
        except Exception as error:  # noqa: BLE001 - one message that cannot be written must not stop all others
            log.error("message_not_sent", message=message.id, channel=message.channel, error=type(error).__name__)
            return Answer(ok=False, text=f"it could not be sent: {type(error).__name__}")

    async def _note(self, leased: Leased, answer: Answer, attempt: Attempt) -> None:
        message, now = leased.announcement, self.clock.now()
        if answer.ok:
            await self.outbox.delivered(message.id, attempt)
            log.info("delivered", message=message.id, channel=message.channel, type=message.type, attempts=leased.attempts)
            return
        log.warning("delivery_failed", message=message.id, channel=message.channel, status=answer.status, answer=answer.text)
        if answer.gone:
            await self.outbox.disable_channel(message.channel, "its receiver answered 410 Gone", now=now)
        if answer.gone or answer.hopeless or now - message.created_at >= GIVE_UP:
            await self.outbox.dead(message.id, attempt)
        else:
            await self.outbox.retry(message.id, self._next(leased, answer, now), attempt)

    def _next(self, leased: Leased, answer: Answer, now: datetime) -> datetime:
        """When to try again: after the back-off, or when the receiver says; for the last time when the day is over."""
        wait = wait_s(leased.attempts, rng=self.rng)
        told = None if answer.retry_after is None else span_s(answer.retry_after, now=now)
        last = leased.announcement.created_at + GIVE_UP
        return min(now + timedelta(seconds=min(max(wait, told or 0.0), GIVE_UP.total_seconds())), last)

    async def _give_back(self) -> None:
        try:
            await self.outbox.release(owner=self.owner)
        except BandwatchError:
            log.warning("leases_not_released", owner=self.owner)


async def _first_of(seconds: float, *events: asyncio.Event) -> None:
    """Wait for one of the events, at most so long."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _pause(seconds: float, stop: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
