"""`bandwatch diagnose TARGET`: why is it slow, or impossibly fast? Experiments now, from this machine, without a database."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from app.targets.model import Target
    from app.verdict.diagnosis.course import Step
    from app.verdict.diagnosis.model import Before, Diagnosis

_TESTS = ("speculation", "parallel_streams", "prompt_lengths", "prompt_cache")


@click.command("diagnose")
@click.argument("target")
@click.option(
    "--config", type=click.Path(path_type=Path), default=Path("bandwatch.yaml"), help="The config file that knows it."
)
@click.option("--model", default=None, help="The model, where TARGET is a base URL.")
@click.option("--api-key-env", default=None, help="The environment variable that holds the key of a base URL.")
@click.option("--model-spec", default=None, help="The deployment: the model by catalogue id or alias.")
@click.option("--hardware", default=None, help="The deployment: the accelerator.")
@click.option("--devices", type=click.IntRange(1), default=None, help="The deployment: how many of it.")
@click.option("--quantization", default=None, help="The deployment: weight format.")
@click.option("--test", "tests", type=click.Choice(_TESTS), multiple=True, help="Only these experiments; all by default.")
@click.option("--budget-tokens", type=click.IntRange(0), default=None, help="The most tokens to spend; 100,000.")
@click.option("--before", type=click.Path(path_type=Path), default=None, help="An earlier --json report to compare with.")
@click.option("--seed", type=int, default=0, help="Decides the order of calls.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    *,
    target: str,
    config: Path,
    model: str | None,
    api_key_env: str | None,
    model_spec: str | None,
    hardware: str | None,
    devices: int | None,
    quantization: str | None,
    tests: tuple[str, ...],
    budget_tokens: int | None,
    before: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Find out why TARGET (a name in the config file, or a base URL) is slow, or impossibly fast."""
    from app.targets.model import Deployment

    stated = {"model_spec": model_spec, "hardware": hardware, "devices": devices, "quantization": quantization}
    deployment = Deployment(**{k: v for k, v in stated.items() if v is not None}) if any(stated.values()) else None  # type: ignore[arg-type]  # strings and a number, as declared
    found = _from_url(target, model, api_key_env) if "://" in target else _from_file(target, config)
    told = _examine(found, deployment=deployment, tests=tests, budget_tokens=budget_tokens, before=before, seed=seed)
    if as_json:
        from app.verdict.diagnosis.report import diagnosis_json

        click.echo(json.dumps(diagnosis_json(told)))
    else:
        _show(told)


def _from_url(base_url: str, model: str | None, api_key_env: str | None) -> Target:
    from app.errors import UsageError
    from app.targets.model import Provider, Recipe, SecretRef, SecretSource, Target

    if model is None:
        raise UsageError("a base URL needs --model: the model as the endpoint calls it")
    key = None if api_key_env is None else SecretRef(source=SecretSource.ENV, name=api_key_env)
    provider = Provider(name="endpoint", base_url=base_url, api_key=key, max_concurrency=4)
    return Target(name=base_url, provider=provider, model=model, every_s=60.0, recipe=Recipe(name="prose"))


def _from_file(name: str, path: Path) -> Target:
    from app.errors import ConfigError, NotFoundError, Problem
    from app.targets.load import load_config

    try:
        config = load_config(path.read_text(encoding="utf-8"), file=str(path))
    except OSError as error:
        raise ConfigError([Problem(message=f"cannot be read: {error.strerror}", file=str(path))]) from None
    for target in config.targets:
        if target.name == name:
            return target
    raise NotFoundError(f"no target '{name}' in {path}", near=tuple(target.name for target in config.targets)[:5])


def _examine(
    target: Target,
    *,
    deployment: Any,  # noqa: ANN401 - imported when it is used
    tests: tuple[str, ...],
    budget_tokens: int | None,
    before: Path | None,
    seed: int,
) -> Diagnosis:
    import asyncio
    from dataclasses import replace

    from app.bootstrap.examine import examine_now, expected_of
    from app.catalog.load import load_catalog
    from app.secrets import Redactor, Secrets
    from app.settings import environment
    from app.verdict.diagnosis.course import BUDGET_TOKENS, Question
    from app.verdict.diagnosis.model import Experiment

    target = target if deployment is None else replace(target, deployment=deployment)
    question = Question(
        target=target.name,
        seed=seed,
        budget_tokens=BUDGET_TOKENS if budget_tokens is None else budget_tokens,
        most_streams=target.provider.max_concurrency,
        experiments=tuple(Experiment(test) for test in tests) or tuple(Experiment),
        expectation=expected_of(target, load_catalog()),
        before=_before(before),
    )
    secrets = Secrets(Redactor(), environ=environment())
    return asyncio.run(examine_now(target, question, secrets=secrets, progress=_progress))


def _before(path: Path | None) -> Before:
    from app.errors import UsageError
    from app.verdict.diagnosis.report import before_of

    try:
        document = {} if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is no report of an earlier diagnosis: {error}") from None
    return before_of(document)


def _progress(step: Step) -> None:
    """Where it stands, on standard error: one line that is written over on a terminal, one an experiment elsewhere."""
    name = step.experiment.replace("_", " ")
    if sys.stderr.isatty():
        print(f"\r{name}: {step.done + 1} of {step.of}\033[K", end="", file=sys.stderr, flush=True)
    elif step.done == 0:
        print(f"{name}: {step.of} rounds", file=sys.stderr, flush=True)


def _show(told: Diagnosis) -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    click.echo(told.explanation)
    click.echo()
    for result in told.results:
        text = result.says if result.ran else f"could not run: {str(result.reason).replace('_', ' ')}"
        click.echo(f"  {result.test.replace('_', ' '):18} {text}")
    click.echo()
    for suspect in told.suspects:
        if suspect.probability >= 0.01:
            click.echo(f"  {100 * suspect.probability:3.0f} %  {suspect.cause.replace('_', ' ')}")
            for text in suspect.evidence:
                click.echo(f"           for: {text}")
            for text in suspect.against[:3]:
                click.echo(f"           against: {text}")
    click.echo(f"\n{told.calls} calls, {told.tokens} tokens.")
