"""A secret in every provider, channel and DSN; every way to fail; and no place that shows one of them.

The service runs as it does in earnest, roles in a process of their own, against a provider and receivers that send back all
they are told. Then everything that leaves is searched: logs, every row of the database, metrics, API, pages, webhooks,
exports, messages of the command line.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest

from app.storage.database import Database
from app.storage.queries.keys import Scope, create_key
from app.storage.queries.session import writing
from tests.support.echoes import Echoes, echoing
from tests.support.postgres import Cluster

pytestmark = pytest.mark.timeout(400)
PATIENCE_S = 100.0
BEHAVIOURS = {
    "unknown-key": "auth", "long": "auth", "zipped": "auth", "broken": "provider_error", "limited": "rate_limited",
    "refused": "auth", "moved": "provider_error", "no-http": "provider_error", "late-error": "provider_error", "cut": "malformed",
    "html": "malformed", "fine": "ok", "closed": "provider_error", "tls": "timeout", "nowhere": "provider_error",
    "control": "local_error", "unset": "local_error", "rotating": "ok",
}  # fmt: skip
"""What the provider does -> the outcome that comes of it."""
PAGES = ("/", "/incidents", "/compare", "/calculator", "/docs", "/login")
READS = (
    "/providers", "/targets", "/verdicts", "/leaderboard", "/incidents", "/channels", "/silences", "/deliveries?limit=500", "/audit",
    "/catalog/hardware",
)  # fmt: skip


def canary(name: str) -> str:
    """A secret without the look of one, so that only knowing it helps."""
    return f"kanarie.{name.replace('-', '.')}/{sum(map(ord, name)) * 7919 % 99991}+vogel"


@dataclass
class Found:
    """What left the service, by place."""

    echoes: Echoes
    secrets: dict[str, str]
    places: dict[str, list[str]] = field(default_factory=dict)
    outcomes: dict[str, set[str]] = field(default_factory=dict)

    def hits(self, place: str) -> list[str]:
        """Secrets that can be read there, with a bit of what is around the first of each."""
        found = []
        for name, secret in self.secrets.items():
            for spelling in spellings(secret):
                for text in self.places[place]:
                    if (at := text.find(spelling)) >= 0:
                        found.append(f"{name}: …{text[max(0, at - 120) : at + 60]}")
                        break
        return found


def spellings(secret: str) -> set[str]:
    escaped = json.dumps(secret)[1:-1]
    raw = {secret, quote(secret), quote(secret, safe=""), escaped, escaped.replace("/", "\\/"), secret[:-3], secret[3:]}
    return raw | {base64.b64encode(secret.encode()).decode().rstrip("="), secret.encode().hex()}


def config(echoes: Echoes, folder: Path) -> dict[str, Any]:
    urls = {
        "closed": f"http://127.0.0.1:{closed_port()}/v1",
        "tls": f"https://127.0.0.1:{echoes.port}/v1",
        "nowhere": "http://nowhere.invalid/v1",
    }
    providers = {
        name: {"base_url": urls.get(name, f"{echoes.url}/{name}/v1"), "api_key": f"${{env:{variable(name)}}}"}
        for name in BEHAVIOURS
    }
    providers["rotating"] |= {"base_url": f"{echoes.url}/fine/v1/rotating", "api_key": f"${{file:{folder / 'key'}}}"}
    providers["unset"]["api_key"] = "${env:NOBODY_SET_THIS}"
    hooks = {"hook": "hook", "moved-hook": "moved", "am": "am"}
    channels: dict[str, Any] = {
        name: {"kind": "alertmanager" if name == "am" else "webhook", "url": f"${{env:{variable(name)}}}"} for name in hooks
    }
    channels["hook"]["secret"] = "${env:HOOK_SECRET}"
    channels["chat"] = {"kind": "apprise", "url": f"${{env:{variable('chat')}}}"}
    channels["gone"] = {"kind": "webhook", "url": f"${{env:{variable('gone')}}}"}
    targets = [
        {"name": f"{name}/m", "provider": name, "model": "m", "every": "2s", "connection": "cold"} for name in BEHAVIOURS
    ]
    return {
        "providers": providers,
        "targets": targets,
        "channels": channels,
        "routes": [{"channels": sorted(channels)}],
        "deadlines": {"connect": "1s", "first_token": "1500ms", "stall": "1500ms", "total": "1900ms"},
    }


def variable(name: str) -> str:
    return f"CANARY_{name.upper().replace('-', '_')}"


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


def environment(echoes: Echoes, secrets: dict[str, str]) -> dict[str, str]:
    found = {variable(name): secrets[name] for name in BEHAVIOURS if name in secrets}
    found[variable("control")] = f"{secrets['control']}\x07"
    for name, place in {"hook": "hook", "moved-hook": "moved", "am": "am", "gone": ""}.items():
        base = echoes.url if name != "gone" else f"http://127.0.0.1:{closed_port()}"
        found[variable(name)] = (
            f"{base}/{place}/{quote(secrets[name], safe='')}?token={quote(secrets[f'{name}-token'], safe='')}"
        )
    found[variable("chat")] = f"json://user:{quote(secrets['chat'], safe='')}@127.0.0.1:{echoes.port}/chat"
    found["HOOK_SECRET"] = secrets["signature"]
    return found


@dataclass
class Running:
    """The service, and a caller with a key."""

    url: str
    key: str

    def get(self, path: str, *, method: str = "GET", body: Any = None, page: bool = False) -> str:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        headers |= {"Accept": "text/html"} if page else {}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, headers=headers, method=method, data=data)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return f"{answer.headers}\n{answer.read().decode()}"
        except urllib.error.HTTPError as error:
            return f"{error.headers}\n{error.read().decode()}"

    def items(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.get(path).split("\n\n", 1)[1])["items"]
        return found


def eventually(look: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        with suppress(OSError, ValueError, IndexError, KeyError):
            if look():
                return
        assert time.monotonic() < until, f"it did not happen in time: {what}"
        time.sleep(0.25)


@pytest.fixture(scope="module")
def found(postgres: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Found:
    folder = tmp_path_factory.mktemp("canaries")
    names = [
        *BEHAVIOURS,
        "rotated",
        "hook",
        "hook-token",
        "moved-hook",
        "moved-hook-token",
        "am",
        "am-token",
        "gone",
        "gone-token",
    ]
    secrets = {name: canary(name) for name in (*names, "chat", "signature", "dsn") if name != "unset"}
    dsn = postgres.new_database()
    key = asyncio.run(make_key(dsn))
    secrets["api-key"] = key
    with echoing() as echoes:
        result = Found(echoes=echoes, secrets=secrets)
        (folder / "key").write_text(secrets["rotating"] + "\n")
        (folder / "bandwatch.yaml").write_text(json.dumps(config(echoes, folder)))
        port = closed_port()
        with (folder / "log").open("wb") as log:
            service = subprocess.Popen(
                [sys.executable, "-m", "app", "serve", "--config", str(folder / "bandwatch.yaml"), "--port", str(port)],
                stdout=log, stderr=log, start_new_session=True, cwd=folder,
                env={
                    **os.environ, **environment(echoes, secrets), "BANDWATCH_DATABASE_URL": with_password(dsn, secrets["dsn"]),
                    "BANDWATCH_DATA": str(folder / "data"), "BANDWATCH_LOG_LEVEL": "debug", "BANDWATCH_GRACE": "2s",
                    "PYTHONPATH": os.pathsep.join(sys.path),
                },
            )  # fmt: skip
        try:
            drive(Running(url=f"http://127.0.0.1:{port}", key=key), result, folder)
        except AssertionError:
            print((folder / "log").read_text()[-20_000:])
            raise
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(30)
        result.places["logs"] = [(folder / "log").read_text()]
        result.places["the database"] = asyncio.run(dump(dsn))
        result.places["files"] = [
            path.read_bytes().decode("latin-1") for path in (folder / "data").rglob("*") if path.is_file()
        ]
        result.places["webhooks"] = [one.text.split("\r\n\r\n", 1)[1] for one in echoes.heard if not one.key]
    return result


def with_password(dsn: str, password: str) -> str:
    user, rest = dsn.split("@", 1)
    return f"{user}:{quote(password, safe='')}@{rest}"


async def make_key(dsn: str) -> str:
    database = Database(dsn=dsn)
    async with writing(database) as session:
        _, key = await create_key(session, name="test", scope=Scope.ADMIN, now=datetime.now(UTC))
    await database.close()
    return key


def drive(service: Running, found: Found, folder: Path) -> None:
    """Wait until everything has failed in its way, and everyone was told; then look at all there is to see."""
    eventually(lambda: "ok" in service.get("/livez"), "the service lives")
    eventually(lambda: len(service.items("/api/v1/channels")) == 5, "the service answers")
    for channel in ("hook", "moved-hook", "am", "chat", "gone"):
        service.get(f"/api/v1/channels/{channel}/test", method="POST")
    runs: dict[str, list[dict[str, Any]]] = {}

    def all_ran() -> bool:
        for name in BEHAVIOURS:
            runs[name] = service.items(f"/api/v1/targets/{name}/m/runs")
        return all(runs.values())

    eventually(all_ran, "every target was probed")
    (folder / "key").write_text(found.secrets["rotated"])
    eventually(lambda: any(one.key == found.secrets["rotated"] for one in found.echoes.heard), "the new key is used")

    def all_told() -> bool:
        tried = {each["channel"] for each in service.items("/api/v1/deliveries?limit=500") if each["attempts"]}
        opened = {each["rule"] for each in service.items("/api/v1/incidents")}
        return {"hook", "moved-hook", "am", "chat", "gone"} <= tried and "auth" in opened

    eventually(all_told, "every channel was tried, and incidents opened")
    found.outcomes = {name: {run["outcome"] for run in rows} for name, rows in runs.items()}
    look_around(service, found, [row["id"] for rows in runs.values() for row in rows])


def look_around(service: Running, found: Found, run_ids: list[str]) -> None:
    incidents = [each["id"] for each in service.items("/api/v1/incidents")]
    bad_bodies = [
        service.get("/api/v1/targets", method="POST", body={"name": "x", "api_key": found.secrets["fine"]}),
        service.get(
            "/api/v1/channels", method="POST", body={"name": "x", "kind": "webhook", "url": f"ftp://{found.secrets['hook']}"}
        ),
    ]
    single = [f"/api/v1/{path}" for name in BEHAVIOURS for path in (f"targets/{name}/m", f"targets/{name}/m/verdict")]
    single += [f"/api/v1/runs/{each}" for each in run_ids] + [f"/api/v1/incidents/{each}" for each in incidents]
    found.places |= {
        "the API": [*(service.get(f"/api/v1{path}") for path in READS), *map(service.get, single), *bad_bodies],
        "metrics": [service.get("/metrics"), service.get("/readyz"), service.get("/livez"), service.get("/openapi.json")],
        "exports": [service.get(f"/api/v1/export/runs?format={form}") for form in ("csv", "ndjson")],
        "pages": [
            service.get(path, page=True)
            for path in (
                *PAGES,
                *(f"/targets/{name}/m" for name in BEHAVIOURS),
                *(f"/runs/{each}" for each in run_ids),
                *(f"/incidents/{each}" for each in incidents),
                "/nothing-here",
            )
        ],
    }


async def dump(dsn: str) -> list[str]:
    """Every row of every table as text; bytes as what they are, and as what they were before they were compressed."""
    connection = await asyncpg.connect(dsn)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        rows = [row for (table,) in tables for row in await connection.fetch(f'SELECT * FROM "{table}"')]
        return [text for row in rows for value in row.values() for text in readable(value)]
    finally:
        await connection.close()


def readable(value: object) -> Iterator[str]:
    if isinstance(value, bytes):
        yield value.decode("latin-1")
        with suppress(zlib.error):
            yield zlib.decompress(value).decode("latin-1")
        return
    yield str(value)


def test_every_error_path_was_driven_with_the_key(found: Found) -> None:
    told = {name: (outcome, found.outcomes[name]) for name, outcome in BEHAVIOURS.items()}
    blamed_on_us = {"local_error"}  # a busy machine that is late blames itself
    assert {name: each for name, each in told.items() if not ({each[0]} | blamed_on_us) & each[1]} == {}
    reached = set(BEHAVIOURS) - {"closed", "tls", "nowhere", "control", "unset", "rotating"}
    assert [name for name in reached if found.secrets[name] not in {one.key for one in found.echoes.at(f"/{name}/")}] == []
    assert [start for start in ("/hook/", "/moved/", "/am/", "/chat") if not found.echoes.at(start)] == []
    assert any("kanarie" in text for text in found.places["webhooks"]) is False


@pytest.mark.parametrize("place", ["logs", "the database", "files", "metrics", "the API", "pages", "exports", "webhooks"])
def test_no_secret_is_in(found: Found, place: str) -> None:
    assert sum(map(len, found.places[place])) > 100 or place == "files"
    assert found.hits(place) == []


def test_no_redirect_is_followed_with_a_key_or_a_signature(found: Found) -> None:
    assert found.echoes.at("/moved/")
    assert found.echoes.at("/stolen") == []


def test_a_new_key_is_used_without_a_restart_and_the_line_feed_behind_it_is_not(found: Found) -> None:
    used = [one.key for one in found.echoes.at("/fine/v1/rotating")]
    assert {used[0], used[-1]} == {found.secrets["rotating"], found.secrets["rotated"]}
    assert used == sorted(used, key=lambda key: key == found.secrets["rotated"])


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:{}@127.0.0.1:1/db", "postgresql://u:{}@[half/db", "postgresql://u:{}@nowhere.invalid/db", "mysql://u:{}@h/db",
        "postgresql://u@127.0.0.1:port/db?password={}", "{}",
    ],
)  # fmt: skip
def test_a_database_url_that_cannot_be_used_is_not_repeated(dsn: str, tmp_path: Path) -> None:
    secret = canary("dsn")
    port = closed_port()
    env = {**os.environ, "BANDWATCH_DATABASE_URL": dsn.format(quote(secret, safe="")), "BANDWATCH_DATA": str(tmp_path)}
    env |= {"BANDWATCH_LOG_LEVEL": "debug", "PYTHONPATH": os.pathsep.join(sys.path), "BANDWATCH_PORT": str(port)}
    service = subprocess.Popen(
        [sys.executable, "-m", "app", "serve", "--role", "api", "--role", "worker"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, cwd=tmp_path, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        with suppress(AssertionError):
            eventually(lambda: service.poll() is not None or "503" in status(port), "it says what is wrong")
        if service.poll() is None:
            time.sleep(1.5)
    finally:
        service.send_signal(signal.SIGTERM)
        told, _ = service.communicate(timeout=40)
    assert told
    assert [spelling for spelling in spellings(secret) if spelling in told] == []
    assert "Traceback" not in told


def status(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=3) as answer:
            return str(answer.status)
    except urllib.error.HTTPError as error:
        return str(error.code)


def test_a_key_that_stands_in_the_config_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    secret = canary("literal")
    file = tmp_path / "bandwatch.yaml"
    file.write_text(json.dumps({"providers": {"p": {"base_url": f"https://u:{secret}@h/v1", "api_key": secret, secret: 1}}}))
    done = subprocess.run(
        [sys.executable, "-m", "app", "check", str(file)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "api_key" in done.stderr + done.stdout
    assert f": {secret}" not in done.stderr + done.stdout
