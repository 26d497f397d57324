"""What the courier delivers: messages a second to a webhook that keeps up, and how long one waits while another channel hangs.

.venv/bin/python benchmarks/courier.py [--messages 1000] [--hanging 200]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import socket
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import structlog

from app.alerts.courier import Courier
from app.alerts.receiver import Received, Receiver
from app.clock import SystemClock
from app.secrets import Redactor, Secrets
from app.storage.database import Database
from app.storage.embedded import EmbeddedPostgres
from app.storage.migrate import upgrade
from app.storage.outbox import Outbox
from app.targets.model import Channel, ChannelKind, Config, SecretRef, SecretSource
from app.verdict.outbox import Announcement

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def message(number: int, channel: str) -> Announcement:
    body = {"type": "incident.opened", "data": {"summary": "x" * 1000}}
    return Announcement(
        id=f"{channel}-{number}", channel=channel, type="incident.opened", body=body, incident_id=f"{channel}{number}",
        created_at=datetime.now(UTC),
    )  # fmt: skip


def door() -> tuple[socket.socket, str]:
    made = socket.create_server(("127.0.0.1", 0))
    made.setblocking(False)
    return made, f"http://127.0.0.1:{made.getsockname()[1]}/"


def channel(name: str, url: str) -> Channel:
    return Channel(name=name, kind=ChannelKind.WEBHOOK, urls=(url,), secrets=(SecretRef(source=SecretSource.ENV, name="S"),))


async def deliver(database: Database, channels: dict[str, Channel], *, until: asyncio.Event) -> None:
    stop = asyncio.Event()
    courier = Courier(
        outbox=Outbox(database=database),
        config=lambda: Config(channels=channels),
        secrets=Secrets(Redactor(), environ={"S": SECRET}),
        redactor=Redactor(),
        clock=SystemClock(),
        rng=Random(1),
        owner="bench",
    )
    running = asyncio.create_task(courier.run(stop))
    await until.wait()
    stop.set()
    await running


async def keeps_up(database: Database, n: int) -> str:
    done, (sock, url) = asyncio.Event(), door()
    seen: list[Received] = []

    def told(found: Received) -> None:
        seen.append(found)
        if len(seen) == n:
            done.set()

    serving = asyncio.create_task(Receiver(secret=SECRET, told=told).serve(sock))
    await Outbox(database=database).put([message(number, "fine") for number in range(n)])
    cpu, wall = time.process_time(), time.perf_counter()
    await deliver(database, {"fine": channel("fine", url)}, until=done)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    serving.cancel()
    once = len({each.id for each in seen}) == len(seen) and all(each.verified for each in seen)
    return f"{n} messages, {'each once and signed' if once else 'WRONG'}: {n / wall:.0f}/s, {cpu / n * 1e3:.1f} ms CPU each"


async def beside_one_that_hangs(database: Database, hanging: int) -> str:
    done, (sock, url), (silent, hole) = asyncio.Event(), door(), door()
    sent: dict[str, float] = {}
    waits: list[float] = []

    def told(found: Received) -> None:
        waits.append(time.perf_counter() - sent[found.id])
        if len(waits) == 20:
            done.set()

    serving = asyncio.create_task(Receiver(secret=SECRET, told=told).serve(sock))
    outbox = Outbox(database=database)
    await outbox.put([message(number, "hangs") for number in range(hanging)])
    delivering = asyncio.create_task(
        deliver(database, {"fine": channel("fine", url), "hangs": channel("hangs", hole)}, until=done)
    )
    for number in range(20):
        await asyncio.sleep(0.37)
        one = message(10**6 + number, "fine")
        sent[one.id] = time.perf_counter()
        await outbox.put([one])
    await delivering
    serving.cancel()
    silent.close()
    wait = f"median {statistics.median(waits):.2f} s, longest {max(waits):.2f} s from commit to arrival"
    return f"20 messages beside {hanging} for a receiver that hangs: {wait}"


async def main(arguments: argparse.Namespace) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    folder = Path(tempfile.mkdtemp(prefix="bwb-"))
    server = EmbeddedPostgres(directory=folder)
    await server.start()
    database = Database(dsn=server.url)
    try:
        await upgrade(database)
        print(await keeps_up(database, arguments.messages), flush=True)
        print(await beside_one_that_hangs(database, arguments.hanging), flush=True)
    finally:
        await database.close()
        await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--hanging", type=int, default=200)
    asyncio.run(main(parser.parse_args()))
