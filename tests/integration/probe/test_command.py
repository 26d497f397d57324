"""`bandwatch probe` as a person and as a program use it, against scripted providers on real sockets."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.cli.root import run
from tests.support.scenarios import SCENARIOS
from tests.support.scripted import head, play, request_of, serving

PLAIN = SCENARIOS[0]
AS_FROM_A_TERMINAL = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from app.__main__ import main; raise SystemExit(main())"
"""A shell's background jobs ignore SIGINT, and so would whatever they start."""
DEPLOYED = ("--model-spec", "Llama-3.1-8B-Instruct", "--hardware", "H100-SXM-80GB")


def probed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(["probe", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_one_probe_is_told_with_phases_figures_and_units(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(play(PLAIN)) as port:
        code, out, err = probed(capsys, f"http://127.0.0.1:{port}/v1", "--model", "m")
    assert (code, err) == (0, "")
    for words in ("ok  HTTP 200", "stamped by", "connect", "stream", "TTFT", "tok/s", "20 tokens, by usage", "gaps"):
        assert words in out
    assert "\x1b[" not in out


def test_json_is_one_document_with_all_that_the_contract_names(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(play(PLAIN)) as port:
        url = f"http://127.0.0.1:{port}/v1"
        code, out, _ = probed(capsys, url, "--model", "m", "-n", "2", "--json", *DEPLOYED)
    found: dict[str, Any] = json.loads(out)
    assert code == 0
    assert (found["base_url"], found["model"], found["recipe"]) == (url, "m", "chat-short")
    assert set(found) == {"base_url", "model", "recipe", "runs", "summary", "expectation", "verdict"}
    first = found["runs"][0]
    assert {
        "outcome", "error_class", "error_text", "http_status", "connection", "phases", "ttft_s", "ttft_visible_s", "decode_tps",
        "tpot_s", "e2e_s", "e2e_tps", "stream_end_s", "gaps", "output_tokens", "reasoning_tokens", "prompt_tokens",
        "cached_tokens", "token_source", "tokens_per_read", "server_timings", "reliable", "notes", "loop_lag_s", "presend_s",
    } <= set(first)  # fmt: skip
    assert (first["outcome"], first["output_tokens"], first["token_source"]) == ("ok", 20, "usage")
    assert set(first["phases"]) == {"dns_s", "connect_s", "tls_s", "send_s", "wait_s"}
    assert set(first["gaps"]) == {"p50_s", "p95_s", "p99_s", "max_s", "stalls"}
    assert (found["summary"]["ok"], found["summary"]["failed"], found["summary"]["ttft_s"]["n"]) == (2, 0, 2)
    assert found["expectation"]["expected_tps"] > 100
    assert found["verdict"]["state"] == "unknown"
    assert "too_few_samples" in found["verdict"]["reasons"]


def test_enough_probes_of_a_known_deployment_give_a_verdict_that_can_fail_a_pipeline(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(play(PLAIN)) as port:
        url = f"http://127.0.0.1:{port}/v1"
        code, out, _ = probed(capsys, url, "--model", "m", "-n", "6", *DEPLOYED, "--fail-below")
    assert code == 1
    assert "6 probes: 6 ok" in out
    assert "below_expectation" in out
    assert "expected" in out
    assert out.count("TTFT   ") == 7  # a line a probe, and the table


def test_a_probe_that_fails_is_told_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(play(PLAIN)) as port:
        pass
    code, out, _ = probed(capsys, f"http://127.0.0.1:{port}/v1", "--model", "m")
    assert code == 1
    assert "provider_error (connect)" in out
    assert "connection refused" in out
    assert "TTFT" not in out


def test_the_key_comes_from_the_environment_and_is_shown_nowhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    monkeypatch.setenv("LAB_KEY", "sk-canary-0123456789abcdef")

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await request_of(reader))
        body = b'{"error": "wrong key sk-canary-0123456789abcdef"}'
        writer.write(head(401, content_type="application/json") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        await writer.drain()

    with serving(script) as port:
        url = f"http://127.0.0.1:{port}/v1"
        code, out, err = probed(capsys, url, "--model", "m", "--api-key-env", "LAB_KEY", "--json")
    assert b"Bearer sk-canary-0123456789abcdef" in asked[0]
    assert code == 1
    assert json.loads(out)["runs"][0]["outcome"] == "auth"
    assert "canary" not in out + err


def test_a_target_of_the_config_file_is_probed_as_it_stands_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with serving(play(PLAIN)) as port:
        config = tmp_path / "b.yaml"
        config.write_text(
            f'providers: {{lab: {{base_url: "http://127.0.0.1:{port}/v1"}}}}\n'
            "targets: [{name: lab/tiny, provider: lab, model: tiny, every: 60s, recipe: code}]\n"
        )
        code, out, _ = probed(capsys, "lab/tiny", "--config", str(config), "--json")
        _, changed, _ = probed(capsys, "lab/tiny", "--config", str(config), "--json", "--recipe", "prose", "--model", "big")
    found, other = json.loads(out), json.loads(changed)
    assert (code, found["model"], found["recipe"]) == (0, "tiny", "code")
    assert (other["model"], other["recipe"]) == ("big", "prose")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http://127.0.0.1:9/v1"], "--model is needed"),
        (["lab/tiny"], "is no base URL"),
        (["lab/tiny", "--config", "missing.yaml"], "missing.yaml: there is no such file"),
        (["http://127.0.0.1:9/v1", "--model", "m", "--hardware", "H9000"], "deployment.hardware: no hardware 'H9000'"),
        (["http://127.0.0.1:9/v1", "--model", "m", "--recipe", "chat-long"], "recipe"),
        (["ftp://127.0.0.1/v1", "--model", "m"], "base_url"),
        (["http://127.0.0.1:9/v1", "--model", "m", "-n", "0"], "-n"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_and_exit_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = probed(capsys, *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_a_name_that_nobody_knows_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "b.yaml"
    config.write_text(
        'providers: {lab: {base_url: "http://h/v1"}}\ntargets: [{name: lab/tiny, provider: lab, model: tiny, every: 60s}]\n'
    )
    code, _, err = probed(capsys, "lab/tinny", "--config", str(config))
    assert code == 2
    assert "did you mean lab/tiny?" in err


def test_ctrl_c_shows_what_was_measured_so_far() -> None:
    with serving(play(PLAIN)) as port:
        arguments = ["probe", f"http://127.0.0.1:{port}/v1", "--model", "m", "-n", "500"]
        command = [sys.executable, "-c", AS_FROM_A_TERMINAL, *arguments]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert "1/500" in first
    assert process.returncode == 130
    assert " probes: " in out
    assert "Traceback" not in err
