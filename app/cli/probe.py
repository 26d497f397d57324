"""`bandwatch probe`: measure an endpoint now, without a database."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from app.catalog.load import Catalog
    from app.cli.probing.report import Report
    from app.expectation.model import Expectation
    from app.measurement.model import Reading
    from app.measurement.recording import Recording
    from app.targets.model import Config, Target

INTERRUPTED = 130


@click.command("probe")
@click.argument("subject", metavar="TARGET_OR_BASE_URL")
@click.option("--model", default=None, help="The model as the endpoint calls it.")
@click.option("--api-key-env", default=None, metavar="NAME", help="The environment variable that holds the key.")
@click.option("--recipe", default=None, help="What is asked: chat-short by default.")
@click.option("-n", "count", type=click.IntRange(1, 10_000), default=1, show_default=True, help="Probes, one after another.")
@click.option("--model-spec", default=None, help="The deployment's model, by catalogue id or any alias.")
@click.option("--hardware", default=None, help="The deployment's accelerator.")
@click.option("--devices", type=click.IntRange(1), default=None, help="How many of it.")
@click.option("--quantization", default=None, help="The deployment's weight format.")
@click.option("--config", type=click.Path(path_type=Path), default=None, help="The config file that knows the target.")
@click.option("--fail-below", is_flag=True, help="Exit 1 when the verdict is below_expectation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    subject: str,
    model: str | None,
    api_key_env: str | None,
    recipe: str | None,
    count: int,
    config: Path | None,
    fail_below: bool,
    as_json: bool,
    **deployment: str | int | None,
) -> None:
    """Measure a base URL, or a target of the config file, now and without a database.

    Exits 1 when a probe failed; what was measured before Ctrl-C is shown all the same.
    """
    from app.catalog.load import load_catalog
    from app.cli.probing.subject import Wanted, subject_of

    stated = {name: value for name, value in deployment.items() if value is not None}
    if stated.get("hardware") is not None:
        stated.setdefault("devices", 1)
    wanted = Wanted(subject=subject, model=model, api_key_env=api_key_env, recipe=recipe, config=config, deployment=stated)
    catalog = load_catalog()
    target, known = subject_of(wanted, catalog=catalog)
    expectation = _expectation(target, catalog)
    done: list[tuple[Recording, Reading]] = []
    interrupted = _measure(target, count, done, as_json=as_json)
    found = _report(target, done, known, expectation)
    _print(found, count=count, as_json=as_json)
    if interrupted:
        ctx.exit(INTERRUPTED)
    below = found.verdict is not None and str(found.verdict.state) == "below_expectation"
    ctx.exit(1 if found.failed or (fail_below and below) else 0)


def _expectation(target: Target, catalog: Catalog) -> Expectation | None:
    if target.deployment is None:
        return None
    from app.expectation.expect import Workload, expect

    recipe = target.recipe
    work = Workload(context_tokens=recipe.prompt_tokens + recipe.output_tokens // 2, prompt_tokens=max(1, recipe.prompt_tokens))
    return expect(target.deployment, catalog=catalog, workload=work)


def _measure(target: Target, count: int, done: list[tuple[Recording, Reading]], *, as_json: bool) -> bool:
    """Probe, and add to `done`; True when Ctrl-C came first."""
    from app.cli.serve import loop_factory

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_probes(target, count, done, as_json=as_json))
    except KeyboardInterrupt:
        return True
    return False


async def _probes(target: Target, count: int, done: list[tuple[Recording, Reading]], *, as_json: bool) -> None:
    import random

    from app.cli.probing.live import Live
    from app.cli.probing.render import brief
    from app.clock import SystemClock
    from app.probe.client import Clients
    from app.probe.prober import Prober
    from app.secrets import Redactor, Secrets

    clock = SystemClock()
    live = Live(clock, wanted=sys.stderr.isatty() and os.environ.get("TERM") != "dumb")
    clients = Clients()
    prober = Prober(
        clients=clients,
        resolve=Secrets(Redactor()).resolve,
        clock=clock,
        rng=random.SystemRandom(),
        watch=live.watch if live.wanted else None,
    )
    try:
        for number in range(1, count + 1):
            live.prefix = f"{number}/{count}  " if count > 1 else ""
            async with live.shown():
                done.append(await prober.probe(target))
            if count > 1:
                click.echo(brief(number, count, done[-1][1].measurement), err=as_json, color=_colour(err=as_json))
    finally:
        await clients.aclose()


def _report(target: Target, done: list[tuple[Recording, Reading]], config: Config, expectation: Expectation | None) -> Report:
    from app.cli.probing.report import report
    from app.clock import SystemClock

    return report(target, done, config=config, expectation=expectation, now=SystemClock().now())


def _print(found: Report, *, count: int, as_json: bool) -> None:
    from app.cli.probing import render
    from app.cli.probing.report import report_json

    if as_json:
        click.echo(json.dumps(report_json(found)))
        return
    _lines([render.heading(found)])
    if count == 1 and found.done:
        _lines(["", *render.one(*found.done[0])])
    elif found.done:
        _lines(["", *render.table(found)])
    _lines(render.judged(found, width=min(100, shutil.get_terminal_size().columns)))


def _lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line, color=_colour(err=False))


def _colour(*, err: bool) -> bool | None:
    """None lets click decide by the terminal; NO_COLOR decides first."""
    if os.environ.get("NO_COLOR"):
        return False
    return None if (sys.stderr if err else sys.stdout).isatty() else False
