"""What people may change: their own things, all or nothing, noted in the audit log; never what the file states."""

from typing import Any

import pytest

from app.api.views import shown_url
from app.storage.queries.keys import Scope
from app.storage.queries.session import reading
from tests.support.doors import BIG, NOW, House, in_house, seed

NEW = {"name": "lab/a/b", "provider": "lab", "model": "m", "every": "2m"}


async def audited(house: House) -> list[tuple[str, str, str]]:
    async with reading(house.database) as session:
        rows = await session.connection.exec_driver_sql("SELECT actor, action, object FROM audit ORDER BY id")
        return [tuple(row) for row in rows]


def test_a_target_is_made_changed_replaced_and_removed(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key(Scope.WRITE, name="eve")) as client:
            made = await client.post("/api/v1/targets", json=NEW)
            assert (made.status_code, made.json()["origin"], made.json()["every_s"]) == (201, "api", 120.0)
            assert made.headers["location"] == "/api/v1/targets/lab/a/b"
            assert (await client.post("/api/v1/targets", json=NEW)).status_code == 409
            patched = await client.patch("/api/v1/targets/lab/a/b", json={"every": "3m", "slo": {"tps_p50": 30}})
            assert (patched.json()["every_s"], patched.json()["slo"]["tps_p50"]) == (180.0, 30.0)
            assert (await client.patch("/api/v1/targets/lab/a/b", json={"slo": None})).json()["slo"] is None
            replaced = await client.put("/api/v1/targets/lab/a/b", json={"provider": "lab", "model": "n"})
            assert (replaced.status_code, replaced.json()["model"], replaced.json()["every_s"]) == (200, "n", 60.0)
            assert (await client.put("/api/v1/targets/new", json={"provider": "lab", "model": "n"})).status_code == 201
            assert (await client.delete("/api/v1/targets/lab/a/b")).status_code == 204
            assert (await client.get("/api/v1/targets/lab/a/b")).status_code == 404
            assert (await client.delete("/api/v1/targets/lab/a/b")).status_code == 404
        assert [entry[1] for entry in await audited(house)] == [
            "target.create", "target.change", "target.change", "target.replace", "target.replace", "target.delete",
        ]  # fmt: skip
        assert {entry[0] for entry in await audited(house)} == {"eve"}

    in_house(dsn, scenario)


def test_what_stands_in_the_file_answers_409_to_a_change(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key()) as client:
            path = f"/api/v1/targets/{BIG}"
            assert (await client.put(path, json={"provider": "groq", "model": "m"})).status_code == 409
            assert (await client.patch(path, json={"every": "5m"})).status_code == 409
            assert (await client.delete(path)).status_code == 409
            assert (await client.put("/api/v1/channels/ops", json={"kind": "webhook", "url": "https://x"})).status_code == 409
            assert (await client.delete("/api/v1/channels/ops")).status_code == 409
        assert await audited(house) == []

    in_house(dsn, scenario)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"name": "x", "provider": "none", "model": "m"}, "provider"),
        ({"name": "x", "provider": "lab"}, "model"),
        ({"name": "x/runs", "provider": "lab", "model": "m"}, "name"),
        ({"name": "x", "provider": "lab", "model": "m", "every": 60}, "every"),
        ({"name": "x", "provider": "lab", "model": "m", "colour": "red"}, "colour"),
        ({"name": "x", "provider": "lab", "model": "m", "deadlines": {"total": "5m"}}, "deadlines.total"),
    ],
)
def test_a_target_that_cannot_be_is_refused_with_its_field(dsn: str, document: dict[str, Any], field: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key()) as client:
            answer = await client.post("/api/v1/targets", json=document)
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert field in {error["field"] for error in answer.json()["errors"]}

    in_house(dsn, scenario)


@pytest.mark.parametrize(
    "body", [b"", b"[", b"[]", b'"x"', b"{", b'{"name": "\\u0000"}', b'{"name": "\\ud800"}', b"\xff", b"null"]
)
def test_a_body_that_is_no_document_is_the_callers_fault(dsn: str, body: bytes) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key()) as client:
            for method, path in (("POST", "/targets"), ("PUT", "/targets/x"), ("POST", "/silences"), ("PUT", "/channels/x")):
                answer = await client.request(
                    method, f"/api/v1{path}", content=body, headers={"Content-Type": "application/json"}
                )
                assert 400 <= answer.status_code < 500, (method, path, answer.text)

    in_house(dsn, scenario)


def test_a_pause_holds_for_targets_of_the_file_too_and_is_seen_at_once(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=5)
        async with house.caller(key=await house.key()) as client:
            assert (await client.post(f"/api/v1/targets/{BIG}/pause")).json()["paused"] is True
            assert (await client.post(f"/api/v1/targets/{BIG}/pause")).status_code == 200
            assert BIG not in (await client.get("/metrics")).text
            assert (await client.post(f"/api/v1/targets/{BIG}/resume")).json()["paused"] is False
            assert BIG in (await client.get("/metrics")).text
            await client.post("/api/v1/targets", json={**NEW, "paused": True})
            assert (await client.post("/api/v1/targets/lab/a/b/resume")).status_code == 409

    in_house(dsn, scenario)


def test_a_probe_is_asked_for_at_every_location(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key(Scope.WRITE)) as client:
            answer = await client.post(f"/api/v1/targets/{BIG}/probe")
        assert answer.status_code == 202
        assert house.probes == [(BIG, "default", house.clock.now())]

    in_house(dsn, scenario)


def test_an_incident_is_acknowledged_once_and_its_timeline_says_by_whom(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=40)
        async with house.caller(key=await house.key(name="ada")) as client:
            (incident,) = (await client.get("/api/v1/incidents")).json()["items"]
            path = f"/api/v1/incidents/{incident['id']}/acknowledge"
            first, second = await client.post(path), await client.post(path)
            detail = (await client.get(f"/api/v1/incidents/{incident['id']}")).json()
            nobody = await client.post("/api/v1/incidents/none/acknowledge")
        assert first.json()["acknowledged_at"] == second.json()["acknowledged_at"] is not None
        assert [step["summary"] for step in detail["timeline"] if step["kind"] == "acknowledged"] == ["acknowledged by ada"]
        assert nobody.status_code == 404

    in_house(dsn, scenario)


def test_a_silence_lasts_for_its_span_and_can_be_ended(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key()) as client:
            made = await client.post("/api/v1/silences", json={"match": {"provider": "groq"}, "duration": "2h", "comment": "x"})
            assert made.status_code == 201
            assert made.json()["match"] == {"provider": "groq"}
            assert [s["id"] for s in (await client.get("/api/v1/silences")).json()["items"]] == [made.json()["id"]]
            for wrong in (
                {},
                {"duration": "2h", "ends_at": NOW.isoformat()},
                {"ends_at": "2001-01-01T00:00:00Z"},
                {"duration": "0s"},
            ):
                assert (await client.post("/api/v1/silences", json=wrong)).status_code == 422, wrong
            assert (await client.delete(f"/api/v1/silences/{made.json()['id']}")).status_code == 204
            assert (await client.delete(f"/api/v1/silences/{made.json()['id']}")).status_code == 404
            assert (await client.get("/api/v1/silences")).json()["items"] == []

    in_house(dsn, scenario)


def test_a_channel_is_made_tested_and_its_test_can_be_replayed(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key(Scope.WRITE)) as client:
            made = await client.post(
                "/api/v1/channels", json={"name": "hook", "kind": "webhook", "url": "https://hooks.example/x?token=t0psecret"}
            )
            assert (made.status_code, made.json()["urls"]) == (201, ["https://hooks.example/x?…"])
            assert (
                await client.post("/api/v1/channels", json={"name": "hook", "kind": "webhook", "url": "https://y"})
            ).status_code == 409
            queued = await client.post("/api/v1/channels/hook/test")
            assert queued.status_code == 202
            pending = (await client.get("/api/v1/deliveries", params={"state": "pending"})).json()["items"]
            assert [(d["id"], d["channel"], d["type"]) for d in pending] == [(queued.json()["id"], "hook", "channel.test")]
            assert (await client.post(f"/api/v1/deliveries/{queued.json()['id']}/replay")).status_code == 202
            assert (await client.post("/api/v1/deliveries/none/replay")).status_code == 404
            assert (await client.post("/api/v1/channels/none/test")).status_code == 404
            assert (await client.delete("/api/v1/channels/hook")).status_code == 204
            assert "hook" not in [c["name"] for c in (await client.get("/api/v1/channels")).json()["items"]]

    in_house(dsn, scenario)


def test_naming_a_secret_of_the_server_needs_the_highest_scope(dsn: str) -> None:
    async def scenario(house: House) -> None:
        document = {"name": "c", "kind": "webhook", "url": "https://x.example", "secret": "${env:DATABASE_PASSWORD}"}
        async with house.caller(key=await house.key(Scope.WRITE)) as client:
            assert (await client.post("/api/v1/channels", json=document)).status_code == 403
        async with house.caller(key=await house.key(Scope.ADMIN)) as client:
            assert (await client.post("/api/v1/channels", json=document)).status_code == 201

    in_house(dsn, scenario)


def test_an_apprise_url_is_taken_by_reference_only_for_it_would_be_stored(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller(key=await house.key(Scope.ADMIN)) as client:
            document = {"name": "chat", "kind": "apprise", "url": "slack://TokenA/TokenB/TokenC"}
            refused = await client.post("/api/v1/channels", json=document)
            made = await client.post("/api/v1/channels", json={**document, "url": "${env:APPRISE_URL}"})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "url")
        assert (made.status_code, made.json()["urls"]) == (201, ["${env:APPRISE_URL}"])

    in_house(dsn, scenario)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.example.net/bandwatch", "https://hooks.example.net/bandwatch"),
        ("https://hooks.example.net/x?token=1#2", "https://hooks.example.net/x?…"),
        ("https://hooks.example.net/services/T0/B0/abcdefghijklmnop1234", "https://hooks.example.net/services/T0/B0/…"),
        ("http://[2001:db8::1]:9093", "http://[2001:db8::1]:9093"),
        ("${env:HOOK}", "${env:HOOK}"),
    ],
)
def test_a_channels_url_is_shown_without_what_may_be_a_token(url: str, shown: str) -> None:
    assert shown_url(url, kind="webhook") == shown


def test_every_kind_of_change_is_in_the_audit_log(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=40)
        async with house.caller(key=await house.key(Scope.WRITE, name="eve")) as client:
            (incident,) = (await client.get("/api/v1/incidents")).json()["items"]
            calls: list[tuple[str, str, Any]] = [
                ("POST", "/targets", NEW), ("PATCH", "/targets/lab/a/b", {"every": "3m"}),
                ("PUT", "/targets/lab/a/b", {"provider": "lab", "model": "n"}),
                ("POST", "/targets/lab/a/b/pause", None), ("POST", "/targets/lab/a/b/resume", None),
                ("POST", "/targets/lab/a/b/probe", None), ("DELETE", "/targets/lab/a/b", None),
                ("POST", "/channels", {"name": "hook", "kind": "webhook", "url": "https://hooks.example.net"}),
                ("PUT", "/channels/hook", {"kind": "webhook", "url": "https://hooks.example.org"}),
                ("POST", "/channels/hook/test", None), ("DELETE", "/channels/hook", None),
                ("POST", "/silences", {"duration": "1h"}), ("POST", f"/incidents/{incident['id']}/acknowledge", None),
            ]  # fmt: skip
            for method, path, body in calls:
                assert (await client.request(method, f"/api/v1{path}", json=body)).is_success, path
            (silence,) = (await client.get("/api/v1/silences")).json()["items"]
            assert (await client.delete(f"/api/v1/silences/{silence['id']}")).is_success
            (delivery,) = (await client.get("/api/v1/deliveries")).json()["items"]
            assert (await client.post(f"/api/v1/deliveries/{delivery['id']}/replay")).is_success
        assert {entry[1] for entry in await audited(house)} == {
            "target.create", "target.change", "target.replace", "target.pause", "target.resume", "target.probe", "target.delete",
            "channel.create", "channel.replace", "channel.test", "channel.delete", "silence.create", "silence.delete",
            "incident.acknowledge", "delivery.replay",
        }  # fmt: skip
        assert len(await audited(house)) == len(calls) + 2

    in_house(dsn, scenario)
