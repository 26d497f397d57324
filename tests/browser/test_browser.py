"""In a real browser: pages draw, refuse nothing by their own policy, and refresh themselves."""

import asyncio
import re
import shutil

import pytest

from tests.support.doors import BIG, House, in_house, seed
from tests.support.site import build_site, listening

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)"),
]


async def dump(url: str, *, budget_ms: int = 3000) -> tuple[str, list[str]]:
    """The page's DOM after a while, and what the console said."""
    process = await asyncio.create_subprocess_exec(
        CHROMIUM or "", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
        f"--virtual-time-budget={budget_ms}", "--dump-dom", url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return out.decode(), [line for line in err.decode().splitlines() if "CONSOLE" in line]


def test_a_targets_charts_are_drawn_and_the_console_has_nothing_to_say(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=30)
        async with listening(house) as url:
            dom, console = await dump(f"{url}/targets/{BIG}")
        assert console == []
        assert len(re.findall(r'class="[^"]*\buplot\b', dom)) == 2
        assert "<canvas" in dom

    in_house(dsn, scenario, build=build_site)


def test_the_overview_refreshes_itself(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=10)
        asked: list[str] = []

        @house.app.middleware("http")
        async def listen(request, call_next):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            if request.headers.get("hx-request"):
                asked.append(request.url.path)
            return await call_next(request)

        async with listening(house) as url:
            dom, console = await dump(url, budget_ms=12000)
        assert console == []
        assert asked
        assert re.search(r"updated \d\d:\d\d:\d\d", dom)

    in_house(dsn, scenario, build=build_site)
