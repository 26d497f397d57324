"""What the API tells: every list has items and a cursor, every figure its samples, and names may hold slashes."""

import json
from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families as parse_text

from tests.support.doors import BIG, NOW, House, ago, in_house, seed


def test_a_target_shows_its_state_its_last_run_its_verdict_and_its_last_day(dsn: str) -> None:
    async def scenario(house: House) -> None:
        ids = await seed(house, failing=2)
        async with house.caller() as client:
            target = (await client.get(f"/api/v1/targets/{BIG}")).json()
            listed = (await client.get("/api/v1/targets")).json()
        assert target["name"] == BIG
        assert target["state"] == "below_expectation"
        assert target["severity"] == "critical"
        assert target["last_run"]["id"] == ids[-1]
        assert target["verdict"]["samples"] >= 5
        assert target["verdict"]["expected"] == 1000.0
        assert target["summary_24h"]["runs"] == 20
        assert target["summary_24h"]["uptime"]["n"] == 20
        assert target["summary_24h"]["uptime"]["value"] == 0.9
        assert (
            target["summary_24h"]["tps"]["low"] < target["summary_24h"]["tps"]["value"] < target["summary_24h"]["tps"]["high"]
        )
        assert [item["name"] for item in listed["items"]] == [BIG, "lab/tiny"]
        assert listed["next_cursor"] is None
        quiet = listed["items"][1]
        assert (quiet["state"], quiet["last_run"], quiet["verdict"]) == ("unknown", None, None)
        assert quiet["summary_24h"]["tps"] is None

    in_house(dsn, scenario)


def test_a_verdict_that_no_run_has_renewed_for_three_intervals_reads_as_unknown(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house)
        house.clock.step(600)
        async with house.caller() as client:
            verdict = (await client.get(f"/api/v1/targets/{BIG}/verdict")).json()
            all_of_them = (await client.get("/api/v1/verdicts")).json()["items"]
        assert (verdict["state"], verdict["severity"], verdict["reasons"]) == ("unknown", "none", ["stale"])
        assert [v["state"] for v in all_of_them] == ["unknown"]

    in_house(dsn, scenario)


def test_runs_are_paged_newest_first_without_a_hole_or_a_repeat(dsn: str) -> None:
    async def scenario(house: House) -> None:
        ids = await seed(house, runs=12, failing=3)
        found, cursor = [], None
        async with house.caller() as client:
            while True:
                query = {"limit": 5, **({} if cursor is None else {"cursor": cursor})}
                page = (await client.get(f"/api/v1/targets/{BIG}/runs", params=query)).json()
                found += [run["id"] for run in page["items"]]
                cursor = page["next_cursor"]
                if cursor is None:
                    break
            failed = (await client.get(f"/api/v1/targets/{BIG}/runs", params={"outcome": "provider_error"})).json()
            recent = (await client.get(f"/api/v1/targets/{BIG}/runs", params={"from": ago(minutes=3).isoformat()})).json()
            before = (await client.get(f"/api/v1/targets/{BIG}/runs", params={"to": ago(minutes=3).isoformat()})).json()
        assert found == ids[::-1]
        assert [run["id"] for run in failed["items"]] == ids[-3:][::-1]
        assert len(recent["items"]) + len(before["items"]) == 12
        assert recent["items"][0]["id"] == ids[-1]

    in_house(dsn, scenario)


def test_one_run_has_its_phases_and_its_token_timeline(dsn: str) -> None:
    async def scenario(house: House) -> None:
        ids = await seed(house, runs=1)
        async with house.caller() as client:
            run = (await client.get(f"/api/v1/runs/{ids[0]}")).json()
            missing = await client.get("/api/v1/runs/nope")
        assert run["run"]["target"] == BIG
        assert run["measurement"]["outcome"] == "ok"
        assert set(run["measurement"]["phases"]) == {"dns_s", "connect_s", "tls_s", "send_s", "wait_s"}
        assert run["read_stamps_s"] == [0.2, 0.3]
        assert run["read_tokens"] == [1.0, 127.0]
        assert missing.status_code == 404
        assert missing.headers["content-type"] == "application/problem+json"

    in_house(dsn, scenario)


def test_a_series_gives_each_step_its_statistic_and_its_samples_and_null_below_what_it_needs(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=30, tps=100.0)
        async with house.caller() as client:
            path = f"/api/v1/targets/{BIG}/series"
            medians = (await client.get(path, params={"metric": "tps", "stat": "p50", "step": "10m"})).json()
            p95 = (await client.get(path, params={"metric": "tps", "stat": "p95", "step": "10m"})).json()
            counts = (await client.get(path, params={"metric": "ttft", "stat": "count", "step": "1h"})).json()
            too_fine = await client.get(path, params={"step": "1s"})
            backwards = await client.get(path, params={"from": NOW.isoformat(), "to": ago(hours=1).isoformat()})
        assert sum(point["n"] for point in medians["items"]) == 30
        assert all(100 <= p["value"] <= 130 for p in medians["items"] if p["n"] >= 5)
        assert [p["value"] for p in p95["items"]] == [None] * len(p95["items"])
        assert sum(point["value"] for point in counts["items"]) == 30
        assert (too_fine.status_code, backwards.status_code) == (400, 400)
        assert medians["unit"] == "tokens/s"

    in_house(dsn, scenario)


def test_the_leaderboard_ranks_with_samples_and_intervals_and_puts_the_unmeasured_last(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=10, tps=100.0)
        await seed(house, target="lab/tiny", runs=10, tps=300.0, expected=310.0, every=timedelta(seconds=30))
        async with house.caller() as client:
            by_speed = (await client.get("/api/v1/leaderboard")).json()["items"]
            by_efficiency = (await client.get("/api/v1/leaderboard", params={"sort": "efficiency"})).json()["items"]
            only = (await client.get("/api/v1/leaderboard", params={"model": "GPT-OSS"})).json()["items"]
            short = (await client.get("/api/v1/leaderboard", params={"window": "2m"})).json()["items"]
        assert [(line["rank"], line["target"]) for line in by_speed] == [(1, "lab/tiny"), (2, BIG)]
        assert by_speed[0]["tps"]["n"] == 10
        assert by_speed[0]["tps"]["low"] <= by_speed[0]["tps"]["value"] <= by_speed[0]["tps"]["high"]
        assert by_efficiency[0]["target"] == "lab/tiny"
        assert round(by_efficiency[0]["efficiency"]["value"], 2) == 0.98
        assert [line["target"] for line in only] == [BIG]
        assert {line["rank"] for line in short} == {None}

    in_house(dsn, scenario)


def test_incidents_have_a_timeline_and_closed_is_another_word_for_resolved(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=40)
        async with house.caller() as client:
            opened = (await client.get("/api/v1/incidents", params={"state": "open"})).json()["items"]
            closed = (await client.get("/api/v1/incidents", params={"state": "closed"})).json()["items"]
            detail = (await client.get(f"/api/v1/incidents/{opened[0]['id']}")).json()
            strange = await client.get("/api/v1/incidents", params={"state": "ajar"})
        assert [(i["target"], i["rule"], i["severity"]) for i in opened] == [(BIG, "below_expectation", "critical")]
        assert closed == []
        assert detail["timeline"][0]["kind"] == "opened"
        assert detail["verdict"]["state"] == "below_expectation"
        assert strange.status_code == 422
        assert strange.json()["errors"][0]["field"] == "query.state"

    in_house(dsn, scenario)


def test_an_export_is_csv_with_a_header_or_one_object_a_line(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=7)
        async with house.caller() as client:
            table = (await client.get("/api/v1/export/runs", params={"format": "csv", "target": BIG})).text.splitlines()
            lines = (await client.get("/api/v1/export/runs", params={"format": "ndjson"})).text.splitlines()
        assert table[0].startswith("id,target,location,")
        assert len(table) == 8
        assert len(lines) == 7
        assert {json.loads(line)["target"] for line in lines} == {BIG}

    in_house(dsn, scenario)


def test_a_badge_is_a_small_picture_with_the_verdict_in_words(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=20)
        async with house.caller() as client:
            status = await client.get(f"/api/v1/badges/{BIG}.svg")
            speed = await client.get(f"/api/v1/badges/{BIG}.svg", params={"metric": "tps"})
            unknown = await client.get("/api/v1/badges/lab/tiny.svg")
            nobody = await client.get("/api/v1/badges/nobody.svg")
        assert status.headers["content-type"].startswith("image/svg+xml")
        assert "below expectation" in status.text
        assert ">11" in speed.text
        assert "unknown" in unknown.text
        assert nobody.status_code == 404

    in_house(dsn, scenario)


def test_providers_show_their_budget_and_the_gravest_state_and_never_a_key(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=20)
        async with house.caller() as client:
            answer = await client.get("/api/v1/providers")
        groq, lab = answer.json()["items"]
        assert (groq["name"], groq["state"], groq["has_key"]) == ("groq", "below_expectation", True)
        assert groq["targets"] == [BIG]
        assert (lab["state"], lab["has_key"]) == ("unknown", False)
        assert "GROQ_API_KEY" not in answer.text

    in_house(dsn, scenario)


def test_metrics_show_the_runs_and_parse(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, runs=20)
        async with house.caller() as client:
            answer = await client.get("/metrics")
            packed = await client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        samples = [s for family in parse_text(answer.text) for s in family.samples]
        runs = [s.value for s in samples if s.name == "bandwatch_probe_runs_total" and s.labels["outcome"] == "ok"]
        assert runs == [20.0, 0.0]
        said = {s.labels["state"]: s.value for s in samples if s.name == "bandwatch_verdict" and s.labels["target"] == BIG}
        assert said["below_expectation"] == 1.0
        assert next(s.value for s in samples if s.name == "bandwatch_expected_tokens_per_second") == 1000.0
        assert next(s.value for s in samples if s.name == "bandwatch_partitions_ahead") == 7.0
        assert packed.headers["content-type"].startswith("application/openmetrics-text")

    in_house(dsn, scenario)


def test_the_description_of_the_api_names_every_route_of_the_contract(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            schema = (await client.get("/openapi.json")).json()
            page = await client.get("/docs")
        paths = {path.removeprefix("/api/v1").replace("{name}", "X") for path in schema["paths"]}
        wanted = {
            "/providers", "/targets", "/targets/X", "/targets/X/pause", "/targets/X/resume", "/targets/X/probe",
            "/targets/X/runs", "/runs/{run_id}", "/targets/X/series", "/leaderboard", "/verdicts", "/targets/X/verdict",
            "/incidents", "/incidents/{incident_id}", "/incidents/{incident_id}/acknowledge", "/silences", "/channels",
            "/channels/X", "/channels/X/test", "/deliveries", "/deliveries/{delivery_id}/replay", "/export/runs", "/events",
            "/badges/X.svg", "/livez", "/readyz", "/metrics",
        }  # fmt: skip
        assert wanted <= paths
        assert "http" not in page.text.replace("http-equiv", "").replace("https://", "")
        assert "<script" not in page.text

    in_house(dsn, scenario)
