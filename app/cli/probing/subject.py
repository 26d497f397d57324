"""What is probed: a target of the config file, or a base URL with what the options say of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from app.catalog.load import Catalog
from app.errors import ConfigError, NotFoundError, Problem, UsageError
from app.targets.load import load_config
from app.targets.model import Config, Target

NAME = "endpoint"
COMMAND_LINE = "command line"
ENDPOINT = "/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line says. `deployment` holds only what was stated."""

    subject: str
    model: str | None
    api_key_env: str | None
    recipe: str | None
    config: Path | None
    deployment: Mapping[str, object]


def subject_of(wanted: Wanted, *, catalog: Catalog) -> tuple[Target, Config]:
    """The target to probe, and the config with thresholds to judge it by.

    Raises:
        UsageError: an option is missing, or does not go with the others.
        ConfigError: a value is wrong, with the field that has it.
        NotFoundError: the config knows no such target; with the nearest names.
    """
    if "://" in wanted.subject:
        return _of_url(wanted, catalog)
    config = _read(wanted, catalog)
    found = next((target for target in config.targets if target.name == wanted.subject), None)
    if found is None:
        near = get_close_matches(wanted.subject, [target.name for target in config.targets], n=3, cutoff=0.4)
        raise NotFoundError(f"no target is called {wanted.subject!r} (a base URL starts with http:// or https://)", near=near)
    return _changed(found, wanted, catalog), config


def _of_url(wanted: Wanted, catalog: Catalog) -> tuple[Target, Config]:
    if wanted.model is None:
        raise UsageError("--model is needed with a base URL: the model as the endpoint calls it")
    url = wanted.subject.rstrip("/").removesuffix(ENDPOINT)
    provider = {"base_url": url, **({} if wanted.api_key_env is None else {"api_key": f"${{env:{wanted.api_key_env}}}"})}
    target, config = _load({NAME: provider}, wanted, model=wanted.model, catalog=catalog)
    return replace(target, name=wanted.model), config


def _load(providers: Mapping[str, object], wanted: Wanted, *, model: str, catalog: Catalog) -> tuple[Target, Config]:
    """Through the loader of config files, so that the same things are right and wrong."""
    target: dict[str, Any] = {"name": NAME, "provider": NAME, "model": model, "every": "60s"}
    if wanted.recipe is not None:
        target["recipe"] = wanted.recipe
    if wanted.deployment:
        target["deployment"] = dict(wanted.deployment)
    try:
        config = load_config(json.dumps({"providers": providers, "targets": [target]}), file=COMMAND_LINE, catalogue=catalog)
    except ConfigError as error:
        raise ConfigError([_as_option(problem) for problem in error.problems]) from None
    return config.targets[0], config


def _as_option(problem: Problem) -> Problem:
    field = problem.field.removeprefix("targets.0.").removeprefix(f"providers.{NAME}.")
    return replace(problem, file=COMMAND_LINE, line=None, field=field)


def _changed(target: Target, wanted: Wanted, catalog: Catalog) -> Target:
    """A target of the file, with what the command line says otherwise."""
    if wanted.api_key_env is not None:
        raise UsageError("--api-key-env goes with a base URL; a target has the key of its provider")
    stated, _ = _load(
        {NAME: {"base_url": target.provider.base_url}}, wanted, model=wanted.model or target.model, catalog=catalog
    )
    return replace(
        target,
        model=stated.model,
        recipe=target.recipe if wanted.recipe is None else stated.recipe,
        deployment=stated.deployment if wanted.deployment else target.deployment,
    )


def _read(wanted: Wanted, catalog: Catalog) -> Config:
    path = wanted.config if wanted.config is not None else Path("bandwatch.yaml")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if wanted.config is None:
            raise UsageError(
                f"{wanted.subject!r} is no base URL (those start with http:// or https://), and there is no bandwatch.yaml "
                "here that could know a target of that name; --config names one"
            ) from None
        raise ConfigError([Problem(file=str(path), message="there is no such file")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([Problem(file=str(path), message=f"cannot be read: {error}")]) from None
    return load_config(text, file=str(path), catalogue=catalog)
