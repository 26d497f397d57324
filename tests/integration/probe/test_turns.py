"""Bodies that end together are read one a turn of the loop, so that whatever else runs gets its turns between them."""

import asyncio
from random import Random

from app.clock import SystemClock
from app.measurement.recording import StampSource, Tape
from app.probe.client import Clients
from app.probe.exchange import new_recording
from app.probe.prober import Prober
from app.targets.model import Connection
from tests.support.scenarios import BASE

STREAMS = 20


def test_others_get_their_turn_between_two_bodies() -> None:
    async def main() -> tuple[int, set[str]]:
        clients = Clients(kernel=False)
        prober = Prober(clients=clients, resolve=lambda _: "", clock=SystemClock(), rng=Random(1))
        turns, over = 0, False

        async def other() -> None:
            nonlocal turns
            while not over:
                turns += 1
                await asyncio.sleep(0)

        async def read() -> str:
            recording = new_recording(
                base_url="http://x.example/v1",
                model="m",
                recipe="chat-short",
                dialect="openai",
                connection=Connection.COLD,
                started_at=SystemClock().now(),
                expected=20,
            )
            recording.status, recording.stamp_source = 200, StampSource.LOOP
            recording.tape = Tape.replayed(b"".join(raw for _, raw in BASE))
            return str((await prober._read(recording, "", "")).measurement.outcome)

        async with asyncio.TaskGroup() as group:
            group.create_task(other())
            async with asyncio.TaskGroup() as reads:
                found = [reads.create_task(read()) for _ in range(STREAMS)]
            over = True
        await clients.aclose()
        return turns, {task.result() for task in found}

    turns, outcomes = asyncio.run(main())
    assert outcomes == {"ok"}
    assert turns >= STREAMS
