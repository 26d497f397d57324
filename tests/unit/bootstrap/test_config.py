"""The configuration in force: replaced whole or not at all, and what is wrong with it is said once."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.bootstrap.config import ConfigHolder, read_config
from app.catalog.load import load_catalog
from app.errors import ConfigError
from app.targets.model import Match, Silence

CATALOG = load_catalog()
ONE = """
providers: {lab: {base_url: "http://10.0.0.1/v1"}}
targets: [{name: lab/a, provider: lab, model: a, every: 60s}]
channels: {ops: {kind: webhook, url: "https://hooks.example.net/x", secret: "${env:S}"}}
"""
TWO = ONE.replace("every: 60s}", "every: 60s}, {name: lab/b, provider: lab, model: b, every: 60s}")


@dataclass
class FakeMade:
    """What the API has made, in memory."""

    targets: Mapping[str, Any] = field(default_factory=dict)
    channels: Mapping[str, Any] = field(default_factory=dict)
    paused: frozenset[str] = frozenset()
    silenced: tuple[Silence, ...] = ()

    async def all(self) -> tuple[Mapping[str, Any], Mapping[str, Any], frozenset[str]]:
        return self.targets, self.channels, self.paused

    async def silences(self) -> tuple[Silence, ...]:
        return self.silenced


def holder(tmp_path: Path, text: str = ONE) -> ConfigHolder:
    path = tmp_path / "bandwatch.yaml"
    path.write_text(text)
    made = ConfigHolder(catalog=CATALOG, path=path)
    made.load()
    return made


def names(one: ConfigHolder) -> list[str]:
    return [target.name for target in one.current.targets]


def refresh(one: ConfigHolder, made: FakeMade | None = None) -> list[dict[str, Any]]:
    with capture_logs() as logs:
        asyncio.run(one.refresh(made))  # type: ignore[arg-type]  # the same methods
    return logs


def test_a_changed_file_is_taken_over_and_an_unchanged_one_is_not_read_again(tmp_path: Path) -> None:
    one = holder(tmp_path)
    assert refresh(one) == []
    one.path.write_text(TWO)
    assert [log["event"] for log in refresh(one)] == ["config_loaded"]
    assert names(one) == ["lab/a", "lab/b"]
    assert refresh(one) == []
    assert names(one) == ["lab/a", "lab/b"]


def test_a_bad_file_keeps_the_old_config_says_so_once_and_is_replaced_by_a_good_one(tmp_path: Path) -> None:
    one = holder(tmp_path)
    one.path.write_text(ONE.replace("every: 60s", "evry: 60s"))
    (log,) = refresh(one)
    assert (log["event"], one.loaded, names(one)) == ("config_rejected", False, ["lab/a"])
    assert "evry" in log["problems"][0]
    assert refresh(one) == []
    one.path.write_text(TWO)
    refresh(one)
    assert (one.loaded, names(one)) == (True, ["lab/a", "lab/b"])


def test_a_file_that_is_gone_keeps_the_old_config_and_says_so_once(tmp_path: Path) -> None:
    one = holder(tmp_path)
    one.path.unlink()
    assert [log["event"] for log in refresh(one)] == ["config_rejected"]
    assert refresh(one) == []
    assert (one.loaded, names(one)) == (False, ["lab/a"])
    one.path.write_text(ONE)
    refresh(one)
    assert one.loaded


def test_a_first_file_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path / "none.yaml", catalog=CATALOG)
    (tmp_path / "latin.yaml").write_bytes(b"providers: \xe9")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_config(tmp_path / "latin.yaml", catalog=CATALOG)


def test_without_a_file_there_is_an_empty_config() -> None:
    one = ConfigHolder(catalog=CATALOG)
    one.load()
    assert refresh(one) == []
    assert names(one) == []


def test_what_the_api_made_is_added_and_the_file_wins(tmp_path: Path) -> None:
    one = holder(tmp_path)
    mine = {"name": "lab/c", "provider": "lab", "model": "c", "every": "60s"}
    taken = {"name": "lab/a", "provider": "lab", "model": "other", "every": "60s"}
    hook = {"kind": "webhook", "url": "https://hooks.example.net/y", "secret": "${env:S}"}
    refresh(one, FakeMade(targets={"lab/c": mine, "lab/a": taken}, channels={"more": hook, "ops": hook}))
    assert [(t.name, t.model) for t in one.current.targets] == [("lab/a", "a"), ("lab/c", "c")]
    assert sorted(one.current.channels) == ["more", "ops"]


def test_a_target_paused_by_the_api_is_paused(tmp_path: Path) -> None:
    one = holder(tmp_path, TWO)
    refresh(one, FakeMade(paused=frozenset({"lab/b"})))
    assert [(t.name, t.paused) for t in one.current.targets] == [("lab/a", False), ("lab/b", True)]
    refresh(one, FakeMade())
    assert not any(t.paused for t in one.current.targets)


def test_what_the_api_made_and_no_longer_fits_is_left_out_and_named(tmp_path: Path) -> None:
    one = holder(tmp_path)
    orphan = {"name": "x", "provider": "gone", "model": "c", "every": "60s"}
    logs = refresh(one, FakeMade(targets={"x": orphan}, channels={"y": {"kind": "pigeon"}}))
    assert {log["event"] for log in logs} == {"target_unusable", "channel_unusable"}
    assert names(one) == ["lab/a"]


def test_silences_made_by_the_api_are_part_of_the_configuration_in_force(tmp_path: Path) -> None:
    one = holder(tmp_path)
    now = datetime.now(UTC)
    silence = Silence(match=Match(provider="lab"), starts_at=now, ends_at=now + timedelta(hours=1))
    refresh(one, FakeMade(silenced=(silence,)))
    assert one.current.silences == (silence,)
    refresh(one, FakeMade())
    assert one.current.silences == ()


def test_what_the_file_names_lies_beside_it(tmp_path: Path) -> None:
    holder = ConfigHolder(catalog=load_catalog(), path=tmp_path / "bandwatch.yaml")
    assert holder.beside("own") == tmp_path / "own"
    assert holder.beside(None) is None
    assert ConfigHolder(catalog=load_catalog()).beside("own") is None
