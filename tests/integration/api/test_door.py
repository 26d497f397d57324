"""Nobody is let in who was not given a key, and no answer says more than it must."""

from collections.abc import AsyncIterator

import pytest

from app.api.door import is_loopback
from app.api.limiter import Buckets, address_of
from app.api.services import Limits
from app.api.shell import HEADERS
from app.storage.queries import keys
from app.storage.queries.keys import Scope
from app.storage.queries.session import reading, writing
from tests.support.doors import BIG, House, in_house, seed

READS = ("/api/v1/targets", "/api/v1/providers", "/openapi.json", "/docs", "/api/v1/export/runs", "/api/v1/events", "/nothing")


def test_without_a_key_loopback_reads_and_changes_nothing(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            assert (await client.get("/api/v1/targets")).status_code == 200
            for method, path in (
                ("POST", "/api/v1/targets"), ("DELETE", "/api/v1/targets/lab/tiny"), ("POST", "/api/v1/targets/lab/tiny/probe"),
                ("POST", "/api/v1/silences"), ("PUT", "/api/v1/channels/x"), ("PATCH", "/api/v1/targets/lab/tiny"),
            ):  # fmt: skip
                answer = await client.request(method, path, json={})
                assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json"), path
                assert "bandwatch keys create" in answer.json()["detail"]
        assert house.probes == []

    in_house(dsn, scenario)


def test_without_a_key_a_page_that_points_its_own_name_at_loopback_reads_nothing(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(host="evil.example") as client:
            assert (await client.get("/api/v1/targets")).status_code == 403
            assert (await client.get("/livez")).status_code == 200

    in_house(dsn, scenario)


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "Via"])
def test_without_a_key_nobody_reads_through_a_proxy_that_listens_elsewhere(dsn: str, header: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            assert (await client.get("/api/v1/targets", headers={header: "203.0.113.9"})).status_code == 403
            key = await house.key(Scope.READ)
            headers = {header: "203.0.113.9", "Authorization": f"Bearer {key}"}
            assert (await client.get("/api/v1/targets", headers=headers)).status_code == 200

    in_house(dsn, scenario)


def test_elsewhere_only_health_and_metrics_answer_until_a_key_exists(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(host="watch.example", address="203.0.113.9") as client:
            for path in ("/livez", "/readyz", "/metrics"):
                assert (await client.get(path)).status_code == 200
            for path in (*READS, "/static/app.css", "/login", "/"):
                assert (await client.get(path)).status_code == 403, path
            key = await house.key(Scope.READ)
            assert (await client.get("/api/v1/targets", headers={"Authorization": f"Bearer {key}"})).status_code == 200
            assert (await client.get("/api/v1/targets")).status_code == 401

    in_house(dsn, scenario, exposed=True)


def test_once_a_key_exists_everything_needs_one(dsn: str) -> None:
    async def scenario(house: House) -> None:
        key = await house.key(Scope.READ)
        async with house.caller() as client:
            for path in READS:
                answer = await client.get(path)
                assert answer.status_code == 401, path
                assert answer.json()["title"] == "Unauthorized"
            for wrong in ("Bearer", "Bearer ", "Bearer bw_wrong", f"Basic {key}", f"Bearer {key}x", "Bearer \udcff"):
                headers = {b"Authorization": wrong.encode("utf-8", "surrogateescape")}
                assert (await client.get("/api/v1/targets", headers=headers)).status_code == 401, wrong
            assert (await client.get("/livez")).status_code == 200
            assert (await client.get("/metrics")).status_code == 200

    in_house(dsn, scenario)


def test_scopes_include_the_ones_before_them(dsn: str) -> None:
    async def scenario(house: House) -> None:
        secrets = {scope: await house.key(scope) for scope in Scope}
        allowed = {}
        for scope, key in secrets.items():
            async with house.caller(key=key) as client:
                read = (await client.get("/api/v1/targets")).status_code
                write = (await client.post("/api/v1/targets/lab/tiny/probe")).status_code
                audit = (await client.get("/api/v1/audit")).status_code
                allowed[scope] = (read, write, audit)
        assert allowed == {Scope.READ: (200, 403, 403), Scope.WRITE: (200, 202, 403), Scope.ADMIN: (200, 202, 200)}

    in_house(dsn, scenario)


def test_a_revoked_key_opens_nothing_at_once_and_revoking_the_last_one_does_not_open_the_door(dsn: str) -> None:
    async def scenario(house: House) -> None:
        key = await house.key(Scope.ADMIN)
        async with house.caller(key=key) as client:
            assert (await client.get("/api/v1/targets")).status_code == 200
            async with writing(house.database) as session:
                (known,) = await keys.list_keys(session)
                await keys.revoke_key(session, known.id, now=house.clock.now())
            assert (await client.get("/api/v1/targets")).status_code == 401
            assert (await client.get("/api/v1/targets", headers={"Authorization": ""})).status_code == 401

    in_house(dsn, scenario)


def test_only_the_hash_of_a_key_is_kept(dsn: str) -> None:
    async def scenario(house: House) -> None:
        secret = await house.key(Scope.READ, name="ci")
        async with reading(house.database) as session:
            (known,) = await keys.list_keys(session)
            raw = (await session.connection.exec_driver_sql("SELECT encode(hash, 'escape') FROM api_keys")).scalar_one()
        assert secret.startswith("bw_")
        assert len(secret) > 40
        assert (known.name, known.scope) == ("ci", Scope.READ)
        assert secret not in raw

    in_house(dsn, scenario)


def test_a_change_with_the_cookie_must_come_from_our_own_page(dsn: str) -> None:
    async def scenario(house: House) -> None:
        cookie = {"Cookie": f"bandwatch_key={await house.key(Scope.WRITE)}"}
        async with house.caller() as client:
            path = "/api/v1/targets/lab/tiny/probe"
            assert (await client.get("/api/v1/targets", headers=cookie)).status_code == 200
            assert (await client.post(path, headers=cookie)).status_code == 403
            assert (await client.post(path, headers={**cookie, "Origin": "http://evil.example"})).status_code == 403
            assert (await client.post(path, headers={**cookie, "Origin": "null"})).status_code == 403
            assert (await client.post(path, headers={**cookie, "Origin": "http://localhost"})).status_code == 202

    in_house(dsn, scenario)


def test_a_browser_without_a_key_is_led_to_the_login(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await house.key()
        async with house.caller() as client:
            page = await client.get("/targets/lab/tiny", headers={"Accept": "text/html"})
            api = await client.get("/api/v1/targets", headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["location"]) == (303, "/login?next=/targets/lab/tiny")
        assert api.status_code == 401

    in_house(dsn, scenario)


def test_every_answer_has_the_security_headers_also_when_it_refuses(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            for path in ("/livez", "/api/v1/targets", "/api/v1/targets/none", "/nothing", "/api/v1/targets?limit=0", "/%00"):
                answer = await client.get(path)
                for name, value in HEADERS.items():
                    assert answer.headers[name] == value, path
        assert "unsafe" not in HEADERS["Content-Security-Policy"]

    in_house(dsn, scenario)


def test_who_asks_too_much_waits_and_health_and_metrics_are_exempt(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            statuses = [(await client.get("/api/v1/catalog/none")).status_code for _ in range(7)]
            refused = await client.get("/api/v1/targets")
            exempt = {(await client.get(path)).status_code for path in ("/livez", "/readyz", "/metrics") for _ in range(5)}
            house.clock.advance(1.0)
            later = await client.get("/api/v1/targets")
        assert statuses.count(429) == 2
        assert (refused.status_code, refused.json()["title"]) == (429, "Too many requests")
        assert int(refused.headers["retry-after"]) >= 1
        assert exempt == {200}
        assert later.status_code == 200

    in_house(dsn, scenario, limits=Limits(requests_per_s=2.0, burst=5))


def test_a_body_over_the_limit_is_refused_whether_it_says_so_or_not(dsn: str) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b"x" * 1024

    async def scenario(house: House) -> None:
        key = await house.key()
        async with house.caller(key=key) as client:
            declared = await client.post("/api/v1/targets", content=b"x" * 20_000)
            hidden = await client.post("/api/v1/targets", content=chunks())
        assert (declared.status_code, hidden.status_code) == (413, 413)

    in_house(dsn, scenario, limits=Limits(requests_per_s=1e6, burst=10**6, body_bytes=10_000))


@pytest.mark.parametrize("path", ["/api/v1/targets/%00", "/api/v1/targets?provider=%00", "/api/v1/targets/%ff", "/%C0%80"])
def test_bytes_that_are_no_text_are_refused(dsn: str, path: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            assert (await client.get(path)).status_code == 400

    in_house(dsn, scenario)


def test_an_error_of_ours_is_told_by_a_number_and_nothing_else(dsn: str) -> None:
    async def scenario(house: House) -> None:
        @house.app.get("/broken")
        async def broken() -> None:
            raise RuntimeError("secret sk-1234567890abcdef in a traceback")

        async with house.caller() as client:
            answer = await client.get("/broken")
        assert (answer.status_code, answer.json()["title"]) == (500, "Internal error")
        assert "sk-" not in answer.text
        assert "Traceback" not in answer.text
        assert "RuntimeError" not in answer.text

    in_house(dsn, scenario)


def test_one_caller_has_one_bucket_and_an_ipv6_network_is_one_caller() -> None:
    buckets = Buckets(per_s=1.0, burst=2)
    assert [buckets.take("a", now_ns=0) for _ in range(3)] == [0.0, 0.0, 1.0]
    assert buckets.take("b", now_ns=0) == 0.0
    assert buckets.take("a", now_ns=1_000_000_000) == 0.0
    one, other = ({"client": (address, 1)} for address in ("2001:db8::1", "2001:db8::ffff"))
    assert address_of(one) == address_of(other) == "2001:db8::/64"
    assert address_of({"client": None}) == "local"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True), ("localhost:8080", True), ("127.0.0.1:1", True), ("[::1]:8080", True), ("demo.localhost", True),
        ("127.0.0.1.evil.example", False), ("evil.example", False), ("10.0.0.1", False), ("", False), ("[::1", False),
    ],
)  # fmt: skip
def test_loopback_names_are_told_from_others(host: str, *, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_answers_hold_no_reference_to_a_secret_but_its_name(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, target=BIG, runs=1)
        async with house.caller() as client:
            channels = (await client.get("/api/v1/channels")).json()["items"]
        assert channels[0]["secrets"] == ["${env:HOOK_SECRET}"]

    in_house(dsn, scenario)
