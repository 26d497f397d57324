"""`bandwatch check` says whether a config file is right, in words or as one JSON document, by its exit code too."""

import json
from pathlib import Path

import pytest

from app.cli.root import run

EXAMPLE = Path(__file__).parents[3] / "bandwatch.example.yaml"
KEYS = ("GROQ_API_KEY", "CEREBRAS_API_KEY", "BANDWATCH_WEBHOOK_SECRET")


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


def test_the_example_is_right_and_only_its_keys_are_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(EXAMPLE)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{EXAMPLE}: ok, 3 providers, 3 targets, 2 channels, 2 routes\n"
    warned = err.splitlines()
    assert len(warned) == len(KEYS)
    assert all(key in line for key, line in zip(KEYS, warned, strict=True))


def test_with_the_keys_set_there_is_nothing_to_say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, f"value-of-{name}")
    assert run(["check", str(EXAMPLE), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["ok"] is True
    assert json.loads(out)["warnings"] == []
    assert err == ""


def test_keys_in_the_env_file_count_as_set(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("".join(f"{name}=value-of-it\n" for name in KEYS))
    assert run(["check", str(EXAMPLE), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []


def test_a_wrong_file_exits_2_with_every_problem(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    path.write_text("providers:\n  groq: {base_url: nowhere, api_key: canary-canary}\ntargts: []\n")
    assert run(["check", str(path), "--json"]) == 2
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["ok"] is False
    assert [(p["line"], p["field"]) for p in document["problems"]] == [
        (2, "providers.groq.api_key"),
        (2, "providers.groq.base_url"),
        (3, "targts"),
    ]
    assert err.splitlines()[-1] == f"{path}:3: targts: unknown key; did you mean 'targets'?"
    assert "canary" not in out + err
    assert run(["check", str(path)]) == 2
    assert capsys.readouterr().out == ""


def test_a_file_that_cannot_be_read_exits_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["check", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml: cannot be read: No such file or directory" in capsys.readouterr().err
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    assert run(["check", str(tmp_path / "latin.yaml")]) == 2
    assert "latin.yaml:2: is not UTF-8 text" in capsys.readouterr().err


def test_what_works_but_is_unwise_is_a_warning(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDWATCH_PROT", "1")
    path = tmp_path / "b.yaml"
    path.write_text(
        "channels:\n  a: {kind: webhook, url: 'https://x.example'}\n  b: {kind: apprise, url: 'json://x'}\n  c: {kind: apprise, url: '${env:NOT_THERE}'}\n"
    )
    assert run(["check", str(path)]) == 0
    err = capsys.readouterr().err
    for words in (
        "not signed",
        "hold credentials",
        "NOT_THERE} is not set",
        "nothing to watch",
        "without routes",
        "did you mean BANDWATCH_PORT",
    ):
        assert words in err
