"""Every page tells its main facts without a script, from this site alone, and hides nothing behind an error of ours."""

import re
from html.parser import HTMLParser

import pytest

from app.storage.queries.keys import Scope
from tests.support.doors import BIG, House, in_house, seed
from tests.support.site import build_site

HTML = {"Accept": "text/html"}


class Parsed(HTMLParser):
    """What a page refers to, and what a policy without inline script or style would refuse."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.refused: list[str] = []
        self.labels: set[str | None] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.urls += [known[name] or "" for name in ("src", "href", "action") if name in known]
        self.refused += [f"{tag} {name}" for name in known if name.startswith("on") or name in {"style", "hx-on"}]
        if tag == "style" or (tag == "script" and "src" not in known):
            self.refused.append(tag)


async def pages_of(house: House) -> dict[str, str]:
    ids = await seed(house, runs=40, failing=1)
    async with house.caller() as client:
        incident = (await client.get("/api/v1/incidents")).json()["items"][0]["id"]
        paths = (
            "/", "/?sort=ttft", f"/targets/{BIG}", f"/targets/{BIG}?window=30d", "/targets/lab/tiny", f"/runs/{ids[0]}",
            f"/runs/{ids[-1]}", "/incidents", "/incidents?state=open", f"/incidents/{incident}", "/compare",
            f"/compare?target={BIG}&target=lab/tiny&metric=ttft&window=7d", "/calculator",
            "/calculator?model_spec=meta-llama/Llama-3.3-70B-Instruct&hardware=H100-SXM-80GB&devices=4", "/docs",
        )  # fmt: skip
        found = {}
        for path in paths:
            answer = await client.get(path, headers=HTML)
            assert answer.status_code == 200, (path, answer.text[:300])
            found[path] = answer.text
    return found


def test_pages_ask_nobody_else_and_hold_no_inline_script_or_style(dsn: str) -> None:
    async def scenario(house: House) -> None:
        for path, text in (await pages_of(house)).items():
            parsed = Parsed(text)
            assert parsed.refused == [], path
            assert [url for url in parsed.urls if not re.match(r"[/?#]", url) or url.startswith("//")] == [], path
            async with house.caller() as client:
                for url in parsed.urls:
                    if url.startswith("/static/"):
                        file = await client.get(url)
                        assert (file.status_code, "immutable" in file.headers["cache-control"]) == (200, True), url

    in_house(dsn, scenario, build=build_site)


def test_the_overview_says_in_words_what_is_wrong_with_its_figures(dsn: str) -> None:
    async def scenario(house: House) -> None:
        text = (await pages_of(house))["/"]
        for words in (
            BIG,
            "below expectation",
            "expected",
            "ceiling",
            "samples",
            "Open incidents",
            "critical",
            "lab/tiny",
            "unknown",
        ):
            assert words in text, words
        assert "1\u202f000" in text

    in_house(dsn, scenario, build=build_site)


def test_the_live_part_is_the_page_without_its_frame(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house)
        async with house.caller() as client:
            part = await client.get("/", headers={"HX-Request": "true"})
        assert "<html" not in part.text
        assert BIG in part.text
        assert part.headers["vary"] == "HX-Request"

    in_house(dsn, scenario, build=build_site)


def test_a_targets_page_draws_its_lines_on_the_server_and_loads_the_same_figures(dsn: str) -> None:
    async def scenario(house: House) -> None:
        pages = await pages_of(house)
        assert pages[f"/targets/{BIG}"].count("<polyline") >= 1
        assert "no reliable samples" in pages["/targets/lab/tiny"]
        assert "Nothing is known of lab/tiny yet" in pages["/targets/lab/tiny"]
        async with house.caller() as client:
            figures = (await client.get(f"/targets/{BIG}/figures.json?window=24h")).json()
            strange = await client.get(f"/targets/{BIG}?window=3h", headers=HTML)
        assert len(figures["dots"]) == 40
        assert figures["levels"] == {"expected": 1000.0, "ceiling": 2000.0}
        assert any(value for _, value in figures["lines"]["tps"])
        assert strange.status_code == 422

    in_house(dsn, scenario, build=build_site)


def test_a_runs_page_draws_each_output_read(dsn: str) -> None:
    async def scenario(house: House) -> None:
        (run_id,) = await seed(house, runs=1)
        async with house.caller() as client:
            text = (await client.get(f"/runs/{run_id}")).text
        assert "Token timeline: 128 tokens in 2 reads" in text
        assert text.count("<circle") == 2

    in_house(dsn, scenario, build=build_site)


def test_what_is_not_there_is_a_page_for_people_and_a_problem_for_programs(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            for path in ("/targets/none", "/runs/none", "/incidents/none", "/none"):
                page = await client.get(path, headers=HTML)
                assert (page.status_code, page.headers["content-type"].split(";")[0]) == (404, "text/html"), path
                problem = await client.get(path)
                assert (problem.status_code, problem.headers["content-type"]) == (404, "application/problem+json"), path
            hostile = await client.get("/targets/%3Cscript%3Ealert(1)%3C/script%3E", headers=HTML)
        assert "<script>alert" not in hostile.text

    in_house(dsn, scenario, build=build_site)


@pytest.mark.parametrize("query", ["model_spec=nobody", "model_spec=x&hardware=y", "model_spec=gpt-oss-120b&quantization=zzz"])
def test_the_calculator_says_what_it_does_not_know(dsn: str, query: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            page = await client.get(f"/calculator?{query}", headers=HTML)
        assert page.status_code == 422
        assert 'role="alert"' in page.text

    in_house(dsn, scenario, build=build_site)


def test_a_key_is_pasted_once_and_kept_where_no_script_and_no_other_site_reaches_it(dsn: str) -> None:
    async def scenario(house: House) -> None:
        key = await house.key(Scope.READ)
        async with house.caller() as client:
            assert (await client.get("/", headers=HTML)).headers["location"] == "/login?next=/"
            assert (await client.get("/login", headers=HTML)).status_code == 200
            assert (await client.post("/login", data={"key": "bw_wrong"})).status_code == 401
            entered = await client.post("/login", data={"key": key, "next": "/incidents"})
            cookie = entered.headers["set-cookie"]
            assert (entered.status_code, entered.headers["location"]) == (303, "/incidents")
            assert "HttpOnly" in cookie
            assert "SameSite=strict" in cookie
            assert (await client.get("/", headers=HTML)).status_code == 200
            elsewhere = await client.post("/login", data={"key": key, "next": "//evil.example"})
            assert elsewhere.headers["location"] == "/"
            left = await client.post("/logout", headers={"Origin": "http://localhost"})
            assert 'bandwatch_key=""' in left.headers["set-cookie"]

    in_house(dsn, scenario, build=build_site)


def test_an_incident_is_acknowledged_from_its_page_by_who_may_write(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=40)
        async with house.caller() as client:
            incident = (await client.get("/api/v1/incidents")).json()["items"][0]["id"]
        reader, writer = await house.key(Scope.READ), await house.key(Scope.WRITE, name="ada")
        path = f"/incidents/{incident}"
        async with house.caller(key=reader) as client:
            assert "I have seen it" not in (await client.get(path)).text
            assert (await client.post(f"{path}/acknowledge")).status_code == 403
        async with house.caller(key=writer) as client:
            assert "I have seen it" in (await client.get(path)).text
            assert (await client.post(f"{path}/acknowledge")).status_code == 303
            assert "acknowledged by ada" in (await client.get(path)).text

    in_house(dsn, scenario, build=build_site)
