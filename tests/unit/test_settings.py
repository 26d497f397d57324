"""The process is told by variables; each is documented, and a wrong one is named."""

import os
from pathlib import Path

import pytest

from app.errors import ConfigError
from app.settings import Settings, default_data_dir, environment, load_settings, misspelt, variable

DOCS = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("BANDWATCH_")]:
        monkeypatch.delenv(name)


def test_every_setting_is_documented_and_nothing_else_is() -> None:
    rows = [line.split("|") for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("| `BANDWATCH_")]
    documented = {row[1].strip().strip("`") for row in rows}
    assert documented == {variable(name) for name in Settings.model_fields}
    assert all(row[3].strip() for row in rows)


def test_without_any_variable_the_defaults_hold() -> None:
    settings = load_settings(env_file=None)
    assert (settings.host, settings.port, settings.location, settings.grace) == ("127.0.0.1", 8080, "default", 30.0)
    assert settings.config is None
    assert settings.data == default_data_dir()
    assert settings.instance


def test_a_variable_wins_over_the_file_and_an_empty_one_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("BANDWATCH_PORT=9000\nBANDWATCH_LOCATION=fra\nGROQ_API_KEY=from-the-file\nEMPTY\n")
    monkeypatch.setenv("BANDWATCH_PORT", "9001")
    monkeypatch.setenv("BANDWATCH_HOST", "")
    monkeypatch.setenv("BANDWATCH_LOG_LEVEL", "WARNING")
    monkeypatch.setenv("BANDWATCH_GRACE", "1m")
    settings = load_settings(env_file=tmp_path / ".env")
    assert (settings.port, settings.location, settings.host) == (9001, "fra", "127.0.0.1")
    assert (settings.log_level, settings.grace) == ("warning", 60.0)
    assert environment(env_file=tmp_path / ".env")["GROQ_API_KEY"] == "from-the-file"
    assert "GROQ_API_KEY" not in environment(env_file=None)
    assert "GROQ_API_KEY" not in environment(env_file=tmp_path / "none")


def test_every_wrong_variable_is_named_and_none_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PORT": "canary", "LOG_LEVEL": "canary", "DATABASE_URL": "mysql://u:canary@h/x", "GRACE": "canary s",
        "LOCATION": "a canary", "PUBLIC_URL": "canary",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"BANDWATCH_{name}", value)
    with pytest.raises(ConfigError) as caught:
        load_settings(env_file=None)
    assert {problem.field for problem in caught.value.problems} == {
        "BANDWATCH_PORT", "BANDWATCH_LOG_LEVEL", "BANDWATCH_DATABASE_URL", "BANDWATCH_GRACE", "BANDWATCH_LOCATION", "BANDWATCH_PUBLIC_URL",
    }  # fmt: skip
    assert "u:canary" not in str(caught.value)


def test_the_database_url_is_shown_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDWATCH_DATABASE_URL", "postgresql://u:canary@h/x")
    monkeypatch.setenv("BANDWATCH_PUBLIC_URL", "https://bandwatch.example/")
    settings = load_settings(env_file=None)
    assert "canary" not in repr(settings)
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value().endswith("@h/x")
    assert settings.public_url == "https://bandwatch.example"


def test_data_is_kept_where_the_postgres_user_can_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_data_dir() == Path("/var/lib/bandwatch")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", "/data/of/mine")
    assert default_data_dir() == Path("/data/of/mine/bandwatch")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_data_dir() == Path.home() / ".local" / "share" / "bandwatch"


def test_a_misspelt_variable_is_pointed_out_and_other_peoples_are_not() -> None:
    assert misspelt({"BANDWATCH_DATABSE_URL": "", "BANDWATCH_WEBHOOK_SECRET": "", "PORT": "", "BANDWATCH_PORT": ""}) == (
        "BANDWATCH_DATABSE_URL is no setting; did you mean BANDWATCH_DATABASE_URL?",
    )


def test_neutral_addresses_are_literal_and_may_be_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(load_settings(env_file=None).neutral) == 3
    monkeypatch.setenv("BANDWATCH_NEUTRAL_ADDRESSES", "192.0.2.1:53, [2001:db8::1]:443")
    assert load_settings(env_file=None).neutral == (("192.0.2.1", 53), ("2001:db8::1", 443))
    monkeypatch.setenv("BANDWATCH_NEUTRAL_ADDRESSES", "off")
    assert load_settings(env_file=None).neutral == ()
    for wrong in ("dns.example:53", "192.0.2.1", "192.0.2.1:0", "192.0.2.1:x"):
        monkeypatch.setenv("BANDWATCH_NEUTRAL_ADDRESSES", wrong)
        with pytest.raises(ConfigError, match="BANDWATCH_NEUTRAL_ADDRESSES"):
            load_settings(env_file=None)
