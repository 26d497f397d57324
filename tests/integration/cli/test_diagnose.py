"""`bandwatch diagnose` against simulated providers on real sockets, as a process of its own."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from app.catalog.load import load_catalog
from app.expectation.speculation import Speculation
from app.simulator.hidden import Hidden
from app.simulator.host import Host
from app.simulator.plan import Habits
from app.simulator.server import Server, serve

T = TypeVar("T")
ROOT = Path(__file__).parents[3]
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
PLAIN = Host(
    name="plain",
    model=MODEL,
    hidden=Hidden(model_spec=MODEL, hardware="B200-SXM-180GB", efficiency=1.0),
    habits=Habits(jitter=0.03),
)
DRAFTS = replace(PLAIN, name="drafts", hidden=replace(PLAIN.hidden, speculation=Speculation(alpha=0.9, gamma=4, cost=0.05)))


def on_hosts(*hosts: Host, run: Callable[[Server], Awaitable[T]]) -> T:
    async def main() -> T:
        async with serve(hosts, catalog=load_catalog()) as server:
            return await run(server)

    return asyncio.run(main())


async def bandwatch(*arguments: str, cwd: Path = ROOT) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "app", *arguments, cwd=cwd, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


def a_config(folder: Path, server: Server, names: Sequence[str]) -> Path:
    lines = ["providers:"]
    lines += [f'  {n}: {{base_url: "http://127.0.0.1:{server.port}/{n}/v1", dialect: vllm, max_concurrency: 1}}' for n in names]
    lines += ["targets:"]
    lines += [f"  - {{name: {n}/llama, provider: {n}, model: {MODEL}, every: 60s, recipe: chat-short}}" for n in names]
    path = folder / "bandwatch.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_target_of_the_config_file_is_examined_and_told_as_text(tmp_path: Path) -> None:
    """What the figures are depends on how busy this machine is; what is said of them does not."""

    async def run(server: Server) -> None:
        config = str(a_config(tmp_path, server, ["plain"]))
        code, out, err = await bandwatch("diagnose", "plain/llama", "--config", config, "--test", "parallel_streams")
        assert (code, err) == (0, "")
        assert out.startswith("plain/llama ")
        assert "the provider may not be sent two streams at once" in out
        assert "could not run: max concurrency" in out
        assert out.endswith("0 calls, 0 tokens.\n")
        code, out, err = await bandwatch("diagnose", "plain/llama", "--config", config, "--test", "speculation")
        assert (code, err) == (0, "speculation: 20 rounds\n")
        assert out.count("could not run: not asked") == 3

    on_hosts(PLAIN, run=run)


@pytest.mark.slow
def test_a_draft_is_found_and_its_loss_is_the_first_cause_named(tmp_path: Path) -> None:
    """The earlier report is a file; the second target is the same provider without its draft."""

    async def run(server: Server) -> None:
        config = str(a_config(tmp_path, server, ["drafts", "plain"]))
        code, out, err = await bandwatch("diagnose", "drafts/llama", "--config", config, "--test", "speculation", "--json")
        assert code == 0
        assert err.splitlines() == ["speculation: 20 rounds"]
        told: dict[str, Any] = json.loads(out)
        assert told["figures"]["speculated"] is True
        assert told["calls"] == 20
        assert {each["reason"] for each in told["not_run"] if each["test"].startswith("p")} >= {"not_asked"}
        before = tmp_path / "before.json"
        before.write_text(out)
        code, out, _ = await bandwatch(
            "diagnose", "plain/llama", "--config", config, "--test", "speculation", "--before", str(before)
        )
        assert code == 0
        assert "Most likely" in out
        assert "speculative decoding was switched off" in out
        assert "could not run: not asked" in out

    on_hosts(DRAFTS, PLAIN, run=run)


def test_an_endpoint_is_examined_by_its_address_and_within_its_budget() -> None:
    async def run(server: Server) -> None:
        code, out, _ = await bandwatch(
            "diagnose", f"http://127.0.0.1:{server.port}/plain/v1", "--model", MODEL, "--budget-tokens", "4000",
            "--model-spec", MODEL, "--hardware", "A100-SXM-80GB", "--json",
        )  # fmt: skip
        told = json.loads(out)
        assert code == 0
        assert told["tokens"] <= 4000
        reasons = {each["test"]: each["reason"] for each in told["not_run"]}
        assert reasons["prompt_lengths"] == reasons["prompt_cache"] == reasons["parallel_streams"] == "budget"
        assert 3 <= told["calls"] <= 20

    on_hosts(PLAIN, run=run)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["http://127.0.0.1:9/v1"], 2, "--model"),
        (["nobody/knows", "--config", "missing.yaml"], 2, "missing.yaml: cannot be read"),
        (["http://127.0.0.1:9/v1", "--model", "m", "--before", "pyproject.toml"], 2, "no report of an earlier diagnosis"),
        (["http://127.0.0.1:9/v1", "--model", "m", "--test", "luck"], 2, "luck"),
        (["groq/nothing", "--config", "bandwatch.example.yaml"], 2, "no target 'groq/nothing'"),
    ],
)
def test_what_cannot_be_examined_is_said_in_one_sentence(arguments: list[str], code: int, words: str) -> None:
    said = asyncio.run(bandwatch("diagnose", *arguments))
    assert said[0] == code
    assert words in said[2]
    assert "Traceback" not in said[2]
