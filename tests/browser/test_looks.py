"""Every page, wide and narrow, light and dark, by mouse and by keyboard: nothing sticks out, nothing complains, nothing is asked of strangers."""

from typing import Any

import pytest

from tests.support.chromium import PATH, Tab, browsing
from tests.support.doors import BIG, House, in_house, seed
from tests.support.site import build_site, listening

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PATH is None, reason="Chromium is not installed (apt-get install chromium)"),
]
HARMLESS = "404 (Not Found)"
CONTRAST = """
(() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const lum = ([r, g, b]) => [r, g, b].map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; })
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const back = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if ((c[3] ?? 1) > 0.99) return c; } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll("main *, header *, footer")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest("svg, .paused, .sr, .skip") || !e.offsetParent) continue;
    const [a, b] = [lum(parse(getComputedStyle(e).color)), lum(back(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return bad;
})()
"""
NAMELESS = """
[...document.querySelectorAll("a, button, input:not([type=hidden]):not([hidden]), select")]
  .filter((e) => !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length || e.title)).map((e) => e.outerHTML.slice(0, 80))
"""


async def pages(house: House) -> list[str]:
    (ids, incident) = (await seed(house, runs=40), "")
    await seed(house, target="lab/tiny", runs=6, failing=4)
    async with house.caller() as client:
        incident = (await client.get("/api/v1/incidents")).json()["items"][0]["id"]
    calculator = "/calculator?model_spec=openai/gpt-oss-120b&hardware=H100-SXM-80GB&devices=8"
    return [
        "/", f"/targets/{BIG}", "/targets/lab/tiny", "/compare", calculator, "/incidents", f"/incidents/{incident}",
        f"/runs/{ids[-1]}", "/docs", "/login", "/nothing-here",
    ]  # fmt: skip


def test_no_page_sticks_out_complains_asks_strangers_or_is_hard_to_read(dsn: str) -> None:
    async def scenario(house: House) -> None:
        found: list[Any] = []
        async with listening(house) as url, browsing() as tab:
            for path in await pages(house):
                for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
                    await tab.look(width=width, scheme="dark" if scheme == "dark" else "light")
                    await tab.open(url + path, settle_s=0.2)
                    over = await tab.js("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                    pale = await tab.js(CONTRAST)
                    nameless = await tab.js(NAMELESS)
                    said = [line for line in tab.console if HARMLESS not in line or path != "/nothing-here"]
                    tab.console.clear()
                    if over > 0 or pale or nameless or said:
                        found.append((path, width, scheme, over, pale[:5], nameless[:5], said[:5]))
            strangers = [asked for asked in tab.asked if not asked.startswith((url, "data:", "about:"))]
        assert found == []
        assert strangers == []

    in_house(dsn, scenario, build=build_site)


def test_everything_is_reached_and_opened_with_the_keyboard_alone(dsn: str) -> None:
    async def focused(tab: Tab) -> str:
        return str(await tab.js("(document.activeElement.textContent || document.activeElement.name || '').trim()"))

    async def scenario(house: House) -> None:
        await seed(house, runs=10)
        async with listening(house) as url, browsing() as tab:
            await tab.look(width=1280)
            await tab.open(url)
            stops = []
            for _ in range(14):
                await tab.press("Tab", 9)
                stops.append(await focused(tab))
            assert stops[:7] == ["Skip to content", "Bandwatch", "Fleet", "Incidents", "Compare", "Calculator", "API"]
            assert BIG in stops
            ring = await tab.js("getComputedStyle(document.activeElement).outlineStyle")
            assert ring == "solid"
            await tab.js(f"[...document.querySelectorAll('a')].find((a) => a.textContent === '{BIG}').focus()")
            await tab.press("Enter", 13)
            await tab.open_again()
            assert await tab.js("location.pathname") == f"/targets/{BIG}"

    in_house(dsn, scenario, build=build_site)


def test_a_refresh_leaves_the_focus_where_it_was(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=10)
        async with listening(house) as url, browsing() as tab:
            await tab.look(width=1280)
            await tab.open(url)
            await tab.js(f"[...document.querySelectorAll('a')].find((a) => a.textContent === '{BIG}').focus()")
            before = len(tab.asked)
            await tab.js("htmx.ajax('GET', '/?sort=tps', {source: '#live', target: '#live', swap: 'innerMorph'})")
            assert len(tab.asked) > before
            assert await tab.js("document.activeElement.textContent") == BIG

    in_house(dsn, scenario, build=build_site)
