"""A real Alertmanager, if this machine has one, that tells a receiver of ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.receivers import Heard, answer, receiving

PATIENCE_S = 90.0
CONFIG = """
route: {{receiver: ours, group_by: [provider, alertname], group_wait: 1s, group_interval: 1s, repeat_interval: 1h}}
receivers: [{{name: ours, webhook_configs: [{{url: "{url}", send_resolved: true}}]}}]
"""


def binary() -> str:
    found = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if found is None:
        pytest.skip("no Alertmanager on this machine (Debian's package prometheus-alertmanager has one)")
    return found


async def eventually(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await look():
            await asyncio.sleep(0.05)


@dataclass
class Alertmanager:
    """One that can be stopped and started again on the same port with the same memory."""

    folder: Path
    port: int
    heard: Heard
    process: asyncio.subprocess.Process | None = field(default=None)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        config = self.folder / "alertmanager.yml"
        config.write_text(CONFIG.format(url=self.heard.url))
        with (self.folder / "log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                binary(), f"--config.file={config}", f"--storage.path={self.folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}", "--cluster.listen-address=", stdout=log, stderr=log,
            )  # fmt: skip

        async def ready() -> bool:
            with contextlib.suppress(httpx2.HTTPError):
                return (await self.get("/-/ready")).status_code == 200
            return False

        await eventually(ready)

    async def stop(self) -> None:
        """In order, so that it writes down what it has notified."""
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()

    async def get(self, path: str) -> httpx2.Response:
        async with httpx2.AsyncClient(trust_env=False) as client:
            return await client.get(f"{self.url}{path}")

    async def post(self, path: str, document: Any) -> httpx2.Response:
        async with httpx2.AsyncClient(trust_env=False) as client:
            return await client.post(f"{self.url}{path}", json=document)

    async def alerts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.get("/api/v2/alerts")).json()
        return found

    def told(self) -> list[tuple[str, list[str]]]:
        """(status, targets) of each notification so far."""
        bodies = [json.loads(body) for _, _, body in self.heard.requests]
        return [(each["status"], sorted(alert["labels"]["target"] for alert in each["alerts"])) for each in bodies]


@contextlib.asynccontextmanager
async def alertmanager(folder: Path) -> AsyncIterator[Alertmanager]:
    """Started, and gone afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = int(door.getsockname()[1])
    async with receiving(answer(200)) as heard:
        one = Alertmanager(folder=folder, port=port, heard=heard)
        await one.start()
        try:
            yield one
        finally:
            await one.stop()
