"""A real Chromium, steered over its debugging pipe: sizes, colour schemes, keys, and what its console said."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

PATH = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
PATIENCE_S = 90.0
"""For one step of a browser on a busy machine."""
AS_3_AND_4 = """
import os, sys
ends = [os.dup(os.dup(os.dup(int(number)))) for number in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number, inheritable=True)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""A browser reads its pipe at 3 and writes it at 4. Copied to higher numbers first, so that neither end lies in the other's way."""
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
    "--disable-extensions", "--hide-scrollbars",
)  # fmt: skip


@dataclass
class Tab:
    """One page. `console` has every message, error and refused request since it was opened."""

    writer: asyncio.StreamWriter
    session: str = ""
    console: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    _numbers: Any = field(default_factory=itertools.count)
    _waiting: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        self.writer.write(json.dumps(message).encode() + b"\0")
        async with asyncio.timeout(PATIENCE_S):
            answer = await self._waiting[number]
        assert "error" not in answer, (method, answer)
        result: dict[str, Any] = answer.get("result", {})
        return result

    def hear(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._waiting.pop(message["id"]).set_result(message)
            return
        said = message["params"]
        match message["method"]:
            case "Page.loadEventFired":
                self._loaded.set()
            case "Runtime.consoleAPICalled":
                self.console.append(f"{said['type']}: {[each.get('value') for each in said['args']]}")
            case "Runtime.exceptionThrown":
                self.console.append(f"exception: {said['exceptionDetails'].get('exception', said['exceptionDetails'])}")
            case "Log.entryAdded":
                self.console.append(f"{said['entry']['level']}: {said['entry']['text']} {said['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                self.asked.append(said["request"]["url"])
            case _:
                pass

    async def open(self, url: str, *, settle_s: float = 0.5) -> None:
        """Go there, and wait until it has loaded and its scripts had their time."""
        self._loaded.clear()
        await self.call("Page.navigate", url=url)
        async with asyncio.timeout(PATIENCE_S):
            await self._loaded.wait()
        await asyncio.sleep(settle_s)

    async def open_again(self) -> None:
        """Wait for the page that something on this one opens."""
        async with asyncio.timeout(PATIENCE_S):
            await self._loaded.wait()

    async def look(self, *, width: int, height: int = 900, scheme: Literal["light", "dark"] = "light") -> None:
        """How wide the window is, and which colours its owner likes."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def js(self, expression: str) -> Any:
        """The value of an expression on the page."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def press(self, key: str, code: int) -> None:
        """A key, down and up. A page that it opens is waited for by `open_again`."""
        self._loaded.clear()
        for kind in ("keyDown", "keyUp"):
            text = "\r" if key == "Enter" and kind == "keyDown" else ""
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    async def picture(self) -> bytes:
        """The whole page as PNG."""
        shot = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])


@asynccontextmanager
async def browsing() -> AsyncIterator[Tab]:
    """One tab of a browser that is ended, and whose profile is removed, afterwards."""
    profile = tempfile.mkdtemp(prefix="bwc-")
    ours_in, theirs_out = os.pipe()
    theirs_in, ours_out = os.pipe()
    command = [PATH or "", *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", AS_3_AND_4, str(theirs_in), str(theirs_out), *command,
        pass_fds=(theirs_in, theirs_out), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs_in)
    os.close(theirs_out)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 26)
    incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours_in, "rb"))
    outgoing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(ours_out, "wb"))
    tab = Tab(writer=asyncio.StreamWriter(outgoing, protocol, None, loop))

    async def listen() -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                tab.hear(json.loads((await reader.readuntil(b"\0"))[:-1]))

    listening = asyncio.create_task(listen())
    try:
        target = await tab.call("Target.createTarget", url="about:blank")
        tab.session = (await tab.call("Target.attachToTarget", targetId=target["targetId"], flatten=True))["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await tab.call(f"{domain}.enable")
        yield tab
    finally:
        listening.cancel()
        incoming.close()
        outgoing.close()
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        shutil.rmtree(profile, ignore_errors=True)
