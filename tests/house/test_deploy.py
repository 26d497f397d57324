"""What is deployed: the compose file fits its schema, dashboards are valid PromQL on metrics that exist."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))


def program(name: str) -> str:
    found = shutil.which(name) or (str(BIN / name) if (BIN / name).exists() else None)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def expressions(node: Any) -> Iterator[str]:
    """Every PromQL expression of a dashboard."""
    if isinstance(node, dict):
        if isinstance(node.get("expr"), str):
            yield node["expr"]
        for value in node.values():
            yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


def concrete(expression: str) -> str:
    """As Grafana would send it."""
    return expression.replace("$window", "15m").replace("$target", "t").replace("$location", "l")


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dashboards", ROOT / "tools" / "dashboards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_compose_file_fits_its_schema() -> None:
    command = [program("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_file_that_compose_mounts_exists() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    mounts = [volume for service in services.values() for volume in service.get("volumes", [])]
    sources = {volume.split(":")[0] for volume in mounts if volume.startswith("./")}
    assert sources
    assert [source for source in sorted(sources) if not (ROOT / source).exists()] == []


def test_every_role_has_a_service() -> None:
    from app.bootstrap.service import ROLES

    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for role in ROLES:
        assert services[role]["command"] == ["serve", "--role", role]


def test_the_dockerfile_has_nothing_that_hadolint_minds() -> None:
    done = subprocess.run([program("hadolint"), "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_image_is_built_from_one_base_and_runs_as_nobody() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"python:3.13-slim"}
    assert re.search(r"^USER 10001", text, re.MULTILINE)


def test_dashboards_are_what_their_script_makes() -> None:
    made = generator().files()
    assert {path.name: path.read_text() for path in DASHBOARDS} == made


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda p: p.name)
def test_a_dashboard_asks_only_for_metrics_that_are_documented(path: Path) -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    known = set(re.findall(r"^\| `(bandwatch_\w+)`", page, re.MULTILINE))
    asked = {name for each in expressions(json.loads(path.read_text())) for name in re.findall(r"\bbandwatch_\w+", each)}
    assert asked
    assert {name for name in asked if name not in known and name.removesuffix("_bucket") not in known} == set()


@pytest.mark.prometheus
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda p: p.name)
def test_every_expression_of_a_dashboard_is_valid(path: Path, tmp_path: Path) -> None:
    found = [concrete(each) for each in expressions(json.loads(path.read_text()))]
    rules = {"groups": [{"name": "dashboard", "rules": [{"record": f"panel:{i}", "expr": e} for i, e in enumerate(found)]}]}
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump(rules))
    done = subprocess.run([program("promtool"), "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


PROMETHEUS = ROOT / "deploy" / "prometheus"


@pytest.mark.prometheus
@pytest.mark.parametrize(
    "command",
    [
        ["promtool", "check", "config", "prometheus.yml"],
        ["promtool", "test", "rules", "tests/targets.yml", "tests/service.yml"],
        ["amtool", "check-config", "../alertmanager/alertmanager.yml"],
    ],
    ids=["prometheus", "rules", "alertmanager"],
)
def test_prometheus_and_alertmanager_accept_what_is_deployed(command: list[str]) -> None:
    done = subprocess.run([program(command[0]), *command[1:]], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout + done.stderr


def rules() -> list[dict[str, Any]]:
    files = sorted((PROMETHEUS / "rules").glob("*.yml"))
    return [rule for file in files for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


def test_every_rule_asks_for_metrics_that_exist() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    known = set(re.findall(r"^\| `(bandwatch_\w+)`", page, re.MULTILINE))
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    for rule in rules():
        asked = set(re.findall(r"(?:target:)?\bbandwatch_\w+(?::\w+)*", rule["expr"]))
        assert {name for name in asked if name not in recorded and name not in known} == set(), rule


def test_every_alert_says_how_grave_it_is_where_it_comes_from_and_what_to_do() -> None:
    alerts = [rule for rule in rules() if "alert" in rule]
    tested = "".join(path.read_text() for path in (PROMETHEUS / "tests").glob("*.yml"))
    for rule in alerts:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["labels"]["source"] == "prometheus"
        assert set(rule["annotations"]) == {"summary", "description"}
    assert len({rule["alert"] for rule in alerts}) == len(alerts)
    assert sum(rule["alert"] in tested for rule in alerts) == len(alerts)
