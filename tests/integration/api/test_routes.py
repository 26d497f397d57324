"""The routes that people, dashboards and scripts depend on are there, and described."""

import re
from pathlib import Path

import pytest

from tests.support.doors import build_house

API = "/api/v1"
PROMISED = [
    "",
    "GET /livez",
    "GET /readyz",
    "GET /metrics",
    "GET /api/v1/providers",
    "GET /api/v1/targets",
    "GET /api/v1/targets/{}",
    "POST /api/v1/targets",
    "PUT /api/v1/targets/{}",
    "PATCH /api/v1/targets/{}",
    "DELETE /api/v1/targets/{}",
    "POST /api/v1/targets/{}/pause",
    "POST /api/v1/targets/{}/resume",
    "POST /api/v1/targets/{}/probe",
    "GET /api/v1/targets/{}/runs",
    "GET /api/v1/runs/{}",
    "GET /api/v1/targets/{}/series",
    "GET /api/v1/leaderboard",
    "GET /api/v1/verdicts",
    "GET /api/v1/targets/{}/verdict",
    "GET /api/v1/incidents",
    "GET /api/v1/incidents/{}",
    "POST /api/v1/incidents/{}/acknowledge",
    "GET /api/v1/silences",
    "POST /api/v1/silences",
    "DELETE /api/v1/silences/{}",
    "GET /api/v1/channels",
    "POST /api/v1/channels",
    "PUT /api/v1/channels/{}",
    "DELETE /api/v1/channels/{}",
    "POST /api/v1/channels/{}/test",
    "GET /api/v1/deliveries",
    "POST /api/v1/deliveries/{}/replay",
    "POST /api/v1/expectation",
    "GET /api/v1/catalog/{}",
    "GET /api/v1/export/runs",
    "GET /api/v1/events",
    "GET /api/v1/badges/{}.svg",
    "",
][1:-1]
PARAMETERS = {
    "/api/v1/targets/{name}/runs": {"from", "to", "outcome", "limit", "cursor"},
    "/api/v1/targets/{name}/series": {"metric", "stat", "from", "to", "step"},
    "/api/v1/leaderboard": {"model", "window", "sort"},
    "/api/v1/incidents": {"state"},
    "/api/v1/deliveries": {"state"},
    "/api/v1/export/runs": {"format"},
    "/api/v1/badges/{name}.svg": {"metric"},
}
CHOICES = {
    ("/api/v1/targets/{name}/series", "metric"): {"ttft", "tps", "tpot", "e2e", "gap"},
    ("/api/v1/targets/{name}/series", "stat"): {"p50", "p90", "p95", "p99", "mean", "count"},
    ("/api/v1/leaderboard", "sort"): {"tps", "ttft", "efficiency", "uptime"},
    ("/api/v1/incidents", "state"): {"open", "resolved", "closed"},
    ("/api/v1/deliveries", "state"): {"pending", "delivered", "dead"},
    ("/api/v1/export/runs", "format"): {"csv", "ndjson"},
    ("/api/v1/badges/{name}.svg", "metric"): {"tps", "ttft", "efficiency", "status"},
    ("/api/v1/catalog/{kind}", "kind"): {"hardware", "models", "quantizations"},
}


@pytest.fixture(scope="module")
def described() -> dict[str, dict[str, object]]:
    paths: dict[str, dict[str, object]] = build_house("postgresql://nobody@127.0.0.1/none").app.openapi()["paths"]
    return paths


def plain(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def test_every_promised_route_is_there(described: dict[str, dict[str, object]]) -> None:
    found = {f"{method.upper()} {plain(path)}" for path, methods in described.items() for method in methods}
    assert set(PROMISED) - found == set()


def test_promised_parameters_and_their_values_are_there(described: dict[str, dict[str, object]]) -> None:
    def parameters(path: str) -> dict[str, str]:
        operation: object = described[path]["get"]
        assert isinstance(operation, dict)
        return {each["name"]: str(each["schema"]) for each in operation["parameters"]}

    for path, names in PARAMETERS.items():
        assert names <= parameters(path).keys(), path
    components = str(build_house("postgresql://nobody@127.0.0.1/none").app.openapi()["components"]["schemas"])
    for (path, name), values in CHOICES.items():
        told = parameters(path)[name] + components
        assert [value for value in values if f"'{value}'" not in told] == [], (path, name)


def test_the_manual_lists_every_route_and_no_other(described: dict[str, dict[str, object]]) -> None:
    manual = (Path(__file__).parents[3] / "docs" / "api.md").read_text()
    listed = {f"{method} {API}{path}" for method, path in re.findall(r"^\| `([A-Z]+) (/[^`]*)`", manual, re.MULTILINE)}
    listed |= {f"GET {path}" for path in re.findall(r"`GET (/(?:livez|readyz|metrics))`", manual)}
    assert listed == {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}
