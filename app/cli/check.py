"""`bandwatch check CONFIG`: is this config file right, and is everything it names there?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from app.errors import Problem
    from app.targets.model import Config
    from app.targets.references import Catalogue


@click.command
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.pass_context
def command(ctx: click.Context, config: Path, *, as_json: bool) -> None:
    """Validate a config file; errors name file, line and field. Exit code 0 or 2.

    Secrets that are not set are warnings: they may be set where the service runs.
    """
    from app.errors import ConfigError

    try:
        read = _read(config)
    except ConfigError as error:
        _report(config, as_json=as_json, problems=error.problems)
        ctx.exit(2)
    _report(config, as_json=as_json, read=read, warnings=tuple(_warnings(read)))


def _read(path: Path) -> Config:
    from app.errors import BandwatchError, ConfigError, Problem
    from app.targets.load import load_config

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([Problem(message=f"cannot be read: {error.strerror}", file=str(path))]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError([Problem(message="is not UTF-8 text", file=str(path), line=line)]) from None
    config = load_config(text, file=str(path))
    try:
        catalogue = _catalogue(config, beside=path)
    except (BandwatchError, OSError) as error:
        raise ConfigError([Problem(message=str(error), field="catalog", file=str(path))]) from None
    return load_config(text, file=str(path), catalogue=catalogue)


def _catalogue(config: Config, *, beside: Path) -> Catalogue | None:
    """The catalogue with the user's own rows, whose file is found beside the config."""
    import importlib
    import importlib.util

    if importlib.util.find_spec("app.catalog.load") is None:
        return None
    load: Any = importlib.import_module("app.catalog.load").load_catalog
    loaded: Catalogue = load() if config.catalog is None else load(beside.parent / config.catalog)
    return loaded


def _warnings(config: Config) -> Iterator[str]:
    import os

    from app.errors import SecretError
    from app.secrets import resolve
    from app.settings import environment, misspelt
    from app.targets.model import ChannelKind, SecretRef

    environ = environment()
    named: list[tuple[str, SecretRef]] = [
        (f"providers.{provider.name}.api_key", provider.api_key)
        for provider in config.providers.values()
        if provider.api_key is not None
    ]
    for channel in config.channels.values():
        named += [(f"channels.{channel.name}.url", url) for url in channel.urls if isinstance(url, SecretRef)]
        named += [(f"channels.{channel.name}.secret", secret) for secret in channel.secrets]
    for field, reference in named:
        try:
            resolve(reference, environ=environ)
        except SecretError as error:
            yield f"{field}: {error}"
    for channel in config.channels.values():
        if channel.kind is ChannelKind.WEBHOOK and not channel.secrets:
            yield f"channels.{channel.name}: without a secret its requests are not signed"
        if channel.kind is ChannelKind.APPRISE and any(isinstance(url, str) for url in channel.urls):
            yield f"channels.{channel.name}.url: such URLs hold credentials; write a reference like ${{env:NAME}}"
    if not config.targets:
        yield "targets: there is nothing to watch"
    if config.channels and not config.routes:
        yield "routes: without routes nothing reaches the channels"
    yield from misspelt(os.environ)


def _report(
    path: Path,
    *,
    as_json: bool,
    read: Config | None = None,
    problems: tuple[Problem, ...] = (),
    warnings: tuple[str, ...] = (),
) -> None:
    counts = {} if read is None else {part: len(getattr(read, part)) for part in ("providers", "targets", "channels", "routes")}
    for line in (*map(str, problems), *(f"warning: {warning}" for warning in warnings)):
        print(line, file=sys.stderr)
    if as_json:
        found = [{"file": p.file, "line": p.line, "field": p.field, "message": p.message} for p in problems]
        document: dict[str, Any] = {
            "file": str(path),
            "ok": not problems,
            "problems": found,
            "warnings": list(warnings),
            **counts,
        }
        print(json.dumps(document, ensure_ascii=False))
    elif read is not None:
        print(f"{path}: ok, " + ", ".join(f"{count} {part}" for part, count in counts.items()))
