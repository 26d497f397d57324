"""What the replicas live among: simulated providers that fail for a while, and a receiver that fails at random."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from random import Random

from app.alerts.signing import verify
from app.catalog.load import Catalog
from app.simulator.faults import Fault
from app.simulator.hidden import Hidden
from app.simulator.host import Host
from app.simulator.server import Server, serve

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
SECRET = "whsec_bWFkZS1mb3ItdGhlLWNyYXNoLXRlc3Q="  # a constant of this test
SECRET_VARIABLE = "CRASH_WEBHOOK_SECRET"

_CONFIG = """\
providers:
{providers}
recipes:
  crash: {{prompt: chat, prompt_tokens: 20, output_tokens: 8}}
targets:
{targets}
channels:
  receiver: {{kind: webhook, url: "http://127.0.0.1:{receiver}/", secret: "${{env:{secret}}}"}}
routes:
  - {{channels: [receiver]}}
thresholds: {{min_samples: 1, min_attempts: 1, window: 1s, group_wait: 10ms, group_over: 1000, flap: 1s}}
"""


def config(names: list[str], *, every_s: float, provider: int, receiver: int) -> str:
    """A target a provider, so that the calls of each can be counted at the provider."""
    return _CONFIG.format(
        providers="".join(f'  {n}: {{base_url: "http://127.0.0.1:{provider}/{n}/v1", dialect: vllm}}\n' for n in names),
        targets="".join(
            f"  - {{name: {n}/m, provider: {n}, model: {MODEL}, every: {every_s:g}s, recipe: crash}}\n" for n in names
        ),
        receiver=receiver,
        secret=SECRET_VARIABLE,
    )


def hosts(names: list[str]) -> list[Host]:
    """Healthy ones."""
    return [Host(name=n, model=MODEL, hidden=Hidden(model_spec=MODEL, hardware="H100-SXM-80GB", stack="vllm")) for n in names]


@dataclass
class Providers:
    """The simulated providers, and who of them is down."""

    server: Server
    names: list[str]

    def set_down(self, names: set[str]) -> None:
        """These answer 500 from now on, and all others as they should."""
        for name, desk in self.server.desks.items():
            desk.host = replace(desk.host, odds={Fault.SERVER_ERROR: 1.0} if name in names else {})

    def calls(self) -> dict[str, int]:
        """How often each was called."""
        return {name: desk.served for name, desk in self.server.desks.items()}


@contextlib.asynccontextmanager
async def providers(names: list[str], catalog: Catalog) -> AsyncIterator[Providers]:
    """Serve them on a free port."""
    async with serve(hosts(names), catalog=catalog) as server:
        yield Providers(server=server, names=names)


@dataclass
class Message:
    """One request that the receiver was sent, and whether it said yes."""

    id: str
    type: str
    incident: str
    verified: bool
    taken: bool
    body: str


@dataclass
class Receiver:
    """Answers 500, hangs, or closes without a word, by chance; `patient` makes it say yes to all."""

    rng: Random
    patient: bool = False
    messages: list[Message] = field(default_factory=list)
    port: int = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:])}
                body = (await reader.readexactly(int(headers.get("content-length", "0")))).decode()
                if not await self._answer(headers, body, writer):
                    break
        writer.close()

    async def _answer(self, headers: dict[str, str], body: str, writer: asyncio.StreamWriter) -> bool:
        chance = 1.0 if self.patient else self.rng.random()
        content = json.loads(body)
        message = Message(
            id=headers.get("webhook-id", ""),
            type=content["type"],
            incident=content["data"]["incident"]["id"],
            verified=verify(SECRET, headers=headers, body=body),
            taken=chance >= 0.3,
            body=json.dumps(content["data"], sort_keys=True),
        )
        self.messages.append(message)
        if chance < 0.03:
            await asyncio.sleep(15.0)  # longer than a courier waits
        if chance < 0.08:
            return False
        status = 200 if message.taken else 503
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        return True


@contextlib.asynccontextmanager
async def receiving(rng: Random) -> AsyncIterator[Receiver]:
    """Listen on a free port."""
    receiver = Receiver(rng=rng)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(receiver.take(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
