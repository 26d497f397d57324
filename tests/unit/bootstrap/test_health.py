"""Liveness and readiness of a process without the API, over a real socket."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.bootstrap.health import serve_health
from app.bootstrap.service import listen
from app.errors import UnavailableError


@dataclass
class FakeCore:
    """Ready or not, with a database that answers, refuses or hangs."""

    error: Exception | None = None
    hangs: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def database(self) -> "FakeCore":
        return self

    async def check(self) -> str:
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return "18.0"


async def asked(port: int, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def status(path: str, *, ready: bool = True, **core: Any) -> int:
    async def main() -> int:
        fake, door = FakeCore(**core), listen("127.0.0.1", 0)
        if ready:
            fake.ready.set()
        serving = asyncio.create_task(serve_health(fake, door))  # type: ignore[arg-type]  # what it needs of a core
        try:
            port = door.getsockname()[1]
            return int((await asked(port, f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())).split(b" ")[1])
        finally:
            fake.stop.set()
            await serving
            door.close()

    return asyncio.run(main())


def test_a_process_that_runs_is_alive_whatever_the_database_does() -> None:
    assert status("/livez", error=UnavailableError("away")) == 200
    assert status("/livez", ready=False) == 200


def test_it_is_ready_when_schema_and_database_are_there() -> None:
    assert status("/readyz") == 200
    assert status("/readyz?verbose") == 200


@pytest.mark.parametrize("why", [{"ready": False}, {"error": UnavailableError("away")}, {"hangs": True}])
def test_it_is_not_ready_otherwise(why: dict[str, Any]) -> None:
    assert status("/readyz", **why) == 503


def test_there_is_nothing_else() -> None:
    assert status("/metrics") == 404


def test_a_port_in_use_is_said_in_one_sentence() -> None:
    door = listen("127.0.0.1", 0)
    port = door.getsockname()[1]
    with pytest.raises(UnavailableError, match=rf"cannot listen on 127.0.0.1:{port}: Address already in use; choose another"):
        listen("127.0.0.1", port)
    door.close()
