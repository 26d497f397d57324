"""The courier with a real outbox and a real receiver: at least once, in order, under one id, and nobody waits for another."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random

from app.alerts.courier import Courier
from app.alerts.receiver import Received, Receiver
from app.clock import SystemClock
from app.secrets import Redactor, Secrets
from app.storage.database import Database
from app.storage.outbox import Outbox
from app.targets.model import Channel, ChannelKind, Config, SecretRef, SecretSource
from app.verdict.outbox import Announcement

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def message(number: int, *, channel: str = "ops", incident: str = "i", age_s: float = 0.0) -> Announcement:
    return Announcement(
        id=f"msg_{number}",
        channel=channel,
        type="incident.opened",
        body={"type": "incident.opened", "data": {"n": number}},
        incident_id=incident,
        created_at=SystemClock().now() - timedelta(seconds=age_s),
    )


def door() -> tuple[socket.socket, int]:
    made = socket.create_server(("127.0.0.1", 0))
    made.setblocking(False)
    return made, made.getsockname()[1]


def on(
    dsn: str,
    receivers: dict[str, Receiver],
    messages: list[Announcement],
    until: Callable[[Outbox], Awaitable[bool]],
    *,
    within_s: float = 90.0,
) -> None:
    async def main() -> None:
        database = Database(dsn=dsn)
        outbox = Outbox(database=database)
        await outbox.put(messages)
        doors = {name: door() for name in receivers}
        channels = {
            name: Channel(
                name=name,
                kind=ChannelKind.WEBHOOK,
                urls=(f"http://127.0.0.1:{port}/",),
                secrets=(SecretRef(source=SecretSource.ENV, name="S"),),
            )
            for name, (_, port) in doors.items()
        }
        courier = Courier(
            outbox=outbox,
            config=lambda: Config(channels=channels),
            secrets=Secrets(Redactor(), environ={"S": SECRET}),
            redactor=Redactor(),
            clock=SystemClock(),
            rng=Random(1),
            owner="c1",
        )
        stop = asyncio.Event()
        serving = [asyncio.create_task(receiver.serve(doors[name][0])) for name, receiver in receivers.items()]
        running = asyncio.create_task(courier.run(stop))
        try:
            async with asyncio.timeout(within_s):
                while not await until(outbox):
                    await asyncio.sleep(0.05)
        finally:
            stop.set()
            await running
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
            await database.close()

    asyncio.run(main())


def test_messages_of_one_incident_arrive_in_order_signed_and_once_when_all_is_well(dsn: str) -> None:
    receiver = Receiver(secret=SECRET)

    async def done(_: Outbox) -> bool:
        return len(receiver.received) == 3

    on(dsn, {"ops": receiver}, [message(n) for n in range(3)], done)
    assert [r.id for r in receiver.received] == ["msg_0", "msg_1", "msg_2"]
    assert all(r.verified for r in receiver.received)


def test_a_failure_is_tried_again_under_the_same_id_and_nothing_overtakes_it(dsn: str) -> None:
    def fails_first(found: Received) -> int:
        return 500 if sum(r.id == found.id for r in receiver.received) == 1 and found.id == "msg_0" else 200

    receiver = Receiver(secret=SECRET, status=fails_first)

    async def done(_: Outbox) -> bool:
        return any(r.id == "msg_1" for r in receiver.received)

    on(dsn, {"ops": receiver}, [message(0), message(1)], done)
    assert [r.id for r in receiver.received] == ["msg_0", "msg_0", "msg_1"]


def test_a_receiver_that_is_gone_disables_its_channel_and_the_others_go_on(dsn: str) -> None:
    gone, fine = Receiver(secret=SECRET, status=lambda _: 410), Receiver(secret=SECRET)

    async def done(outbox: Outbox) -> bool:
        return len(fine.received) == 1 and await outbox.disabled() == frozenset({"gone"})

    on(dsn, {"gone": gone, "fine": fine}, [message(0, channel="gone"), message(1, channel="fine", incident="j")], done)
    assert len(gone.received) == 1


def test_after_a_day_a_message_is_a_dead_letter(dsn: str) -> None:
    receiver = Receiver(secret=SECRET, status=lambda _: 503)

    async def done(outbox: Outbox) -> bool:
        return (await outbox.oldest_pending())[1] == 1

    on(dsn, {"ops": receiver}, [message(0, age_s=86_401.0)], done)


def test_a_message_for_a_channel_that_is_not_configured_waits(dsn: str) -> None:
    receiver = Receiver(secret=SECRET)

    async def done(outbox: Outbox) -> bool:
        return len(receiver.received) == 1 and (await outbox.oldest_pending())[0] is not None

    on(dsn, {"ops": receiver}, [message(0, channel="nobody"), message(1, incident="j")], done)
