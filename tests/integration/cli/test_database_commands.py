"""`bandwatch db`, `keys` and `export` on a real Postgres: what they say, what they change, and what they never show."""

import asyncio
import csv
import io
import json
import logging
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import structlog
from sqlalchemy import text

from app.cli.root import run as bandwatch
from app.clock import FakeClock
from app.storage.database import Database
from app.storage.ledger import Ledger
from app.storage.partitions import create
from app.targets.model import Thresholds
from tests.support.postgres import Cluster
from tests.support.runs import NOW, decide, run, target

Caught = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    """Commands set up the process's logs."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level


@pytest.fixture
def home(dsn: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANDWATCH_DATABASE_URL", dsn)
    return dsn


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="bwc-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def fill(dsn: str, *, names: tuple[str, ...] = ("p/m",), each: int = 3, model: str = "m") -> None:
    async def main() -> None:
        database = Database(dsn=dsn)
        ledger = Ledger(database=database, clock=FakeClock(wall=NOW), thresholds=Thresholds)
        for name in names:
            for minute in range(each):
                made = replace(run(NOW - timedelta(minutes=minute), name=name), model=model)
                await ledger.record(made, target=target(name), decide=decide)
        await database.close()

    asyncio.run(main())


def fetch(dsn: str, query: str) -> list[tuple[object, ...]]:
    async def main() -> list[tuple[object, ...]]:
        database = Database(dsn=dsn)
        async with database.read() as connection:
            rows = [tuple(row) for row in await connection.execute(text(query))]
        await database.close()
        return rows

    return asyncio.run(main())


def printed(capsys: Caught, *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert bandwatch(arguments) == code
    return capsys.readouterr().out


def test_a_key_is_shown_once_stored_as_a_hash_and_listed_without_its_secret(home: str, capsys: Caught) -> None:
    made = json.loads(printed(capsys, "keys", "create", "--name", "grafana", "--scope", "write", "--json"))
    assert made["secret"].startswith("bw_")
    assert len(made["secret"]) > 40
    (listed,) = json.loads(printed(capsys, "keys", "list", "--json"))
    assert listed == {key: made[key] for key in ("id", "name", "scope", "created_at", "revoked_at")}
    assert made["secret"] not in printed(capsys, "keys", "list")
    ((hashed,),) = fetch(home, "SELECT hash FROM api_keys")
    assert made["secret"].encode() not in bytes(hashed)  # type: ignore[call-overload]


def test_without_json_the_secret_alone_is_on_standard_output(home: str, capsys: Caught) -> None:
    assert printed(capsys, "keys", "create", "--name", "ci").startswith("bw_")
    assert fetch(home, "SELECT scope FROM api_keys") == [("read",)]


def test_a_key_is_revoked_once_and_for_all_and_the_audit_log_knows(home: str, capsys: Caught) -> None:
    key = json.loads(printed(capsys, "keys", "create", "--name", "ci", "--json"))["id"]
    first = json.loads(printed(capsys, "keys", "revoke", key, "--json"))
    again = json.loads(printed(capsys, "keys", "revoke", key, "--json"))
    assert first["revoked_at"] is not None
    assert again == first
    actions = fetch(home, "SELECT action, object, actor FROM audit ORDER BY id")
    assert actions[:2] == [("key.create", key, "cli"), ("key.revoke", key, "cli")]
    assert "revoked" in printed(capsys, "keys", "list")


def test_a_key_that_nobody_knows_and_a_name_that_is_none_are_wrong_usage(home: str, capsys: Caught) -> None:
    assert bandwatch(["keys", "revoke", "nope"]) == 2
    assert "no key 'nope'" in capsys.readouterr().err
    assert bandwatch(["keys", "create", "--name", " "]) == 2
    assert bandwatch(["keys", "create", "--name", "a\nb"]) == 2
    assert fetch(home, "SELECT * FROM api_keys") == []


def test_the_status_tells_the_schema_the_days_and_what_waits(home: str, capsys: Caught) -> None:
    fill(home)
    found = json.loads(printed(capsys, "db", "status", "--json"))
    assert found["up_to_date"] is True
    assert found["revision"] == found["newest_revision"]
    assert found["partitions"]["days_ahead"] >= 6
    assert found["work"]["announcements_pending"] == 0
    assert "runs" in {table["name"] for table in found["tables"]}
    assert not any(table["name"].startswith("runs_2") for table in found["tables"])
    words = printed(capsys, "db", "status")
    assert "up to date" in words
    assert "days ahead" in words


def test_an_empty_database_is_told_from_an_upgraded_one_and_export_says_what_to_do(
    postgres: Cluster, capsys: Caught, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANDWATCH_DATABASE_URL", postgres.server.url.replace("/bandwatch?", "/postgres?"))
    assert "needs" in printed(capsys, "db", "status", code=1)
    assert bandwatch(["export"]) == 1
    assert "bandwatch db upgrade" in capsys.readouterr().err


def test_pruning_drops_the_days_past_retention_and_says_which(home: str, capsys: Caught, tmp_path: Path) -> None:
    old = (datetime.now(UTC) - timedelta(days=10)).date()

    async def make() -> None:
        database = Database(dsn=home)
        await create(database, old)
        await database.close()

    asyncio.run(make())
    (tmp_path / "bandwatch.yaml").write_text("retention: {runs: 5d}\n")
    assert json.loads(printed(capsys, "db", "prune", "--json"))["dropped"] == [old.isoformat()]
    assert json.loads(printed(capsys, "db", "prune", "--json"))["dropped"] == []
    assert "dropped: none" in printed(capsys, "db", "prune")


def test_an_export_has_every_run_newest_first_in_each_format(home: str, capsys: Caught, tmp_path: Path) -> None:
    fill(home, names=("p/m", "p/other"))
    lines = list(csv.DictReader(io.StringIO(printed(capsys, "export"))))
    objects = [json.loads(line) for line in printed(capsys, "export", "--format", "ndjson").splitlines()]
    assert printed(capsys, "export", "--format", "parquet", "--output", str(tmp_path / "runs.parquet")) == ""
    table = pq.read_table(tmp_path / "runs.parquet").to_pylist()
    ids = [line["id"] for line in lines]
    assert len(ids) == 6
    assert ids == [each["id"] for each in objects] == [each["id"] for each in table]
    due = [each["due_at"] for each in table]
    assert due == sorted(due, reverse=True)
    assert [float(line["ttft_s"]) for line in lines] == [each["ttft_s"] for each in objects] == [0.2] * 6
    assert table[0]["output_tokens"] == 128
    assert list(tmp_path.glob(".*.part")) == []


def test_an_export_keeps_to_a_target_and_a_span(home: str, capsys: Caught) -> None:
    fill(home, names=("p/m", "p/other"))
    cut = (NOW - timedelta(seconds=30)).isoformat()
    chosen = [
        json.loads(line)
        for line in printed(capsys, "export", "--target", "p/m", "--from", cut, "--format", "ndjson").splitlines()
    ]
    assert [each["target"] for each in chosen] == ["p/m"]
    assert printed(capsys, "export", "--to", "2020-01-01", "--format", "ndjson") == ""


@pytest.mark.parametrize(
    "arguments",
    [["--target", "p/n"], ["--from", "yesterday"], ["--from", "1h", "--to", "2h"], ["--output", "/nowhere/at/all.csv"]],
)
def test_an_export_that_makes_no_sense_is_wrong_usage_in_one_sentence(home: str, capsys: Caught, arguments: list[str]) -> None:
    fill(home, each=1)
    assert bandwatch(["export", *arguments]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_secret_that_stands_in_a_name_is_masked_and_a_formula_is_disarmed(
    home: str, capsys: Caught, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "canary-0123456789abcdef")
    fill(home, each=1, model="=m?api_key=canary-0123456789abcdef")
    out = printed(capsys, "export")
    assert "canary" not in out
    assert "'=m" in out
    assert "canary" not in printed(capsys, "export", "--format", "ndjson")


def test_a_database_that_is_away_is_one_sentence_without_its_password(
    capsys: Caught, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANDWATCH_DATABASE_URL", "postgresql://u:canary-password@127.0.0.1:1/x")
    for arguments in (["db", "status"], ["keys", "list"], ["export"]):
        assert bandwatch(arguments) == 1
        err = capsys.readouterr().err
        assert "does not answer" in err
        assert "canary" not in err
        assert len(err.strip().splitlines()) == 1


def test_without_a_server_the_data_folder_has_one_for_the_moment(
    folder: Path, capsys: Caught, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("BANDWATCH_DATABASE_URL", raising=False)
    made = json.loads(printed(capsys, "keys", "create", "--name", "x", "--data", str(folder), "--json"))
    (kept,) = json.loads(printed(capsys, "keys", "list", "--data", str(folder), "--json"))
    assert kept["id"] == made["id"]
    assert not (folder / "postgres" / "postmaster.pid").exists()
