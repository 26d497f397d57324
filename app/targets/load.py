"""Read a config file whole: a `Config`, or every problem at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError

from app.errors import ConfigError, Problem
from app.targets.build import build_channel, build_config, build_target
from app.targets.complaints import complaints, suggest
from app.targets.document import Document, read_document
from app.targets.model import Channel, Config, Target
from app.targets.policy import ChannelIn
from app.targets.references import Catalogue, misplaced_secrets, references, unknown_ids
from app.targets.schema import FileIn
from app.targets.sections import Section, TargetIn

S = TypeVar("S", bound=Section)


def load_config(text: str, *, file: str = "bandwatch.yaml", catalogue: Catalogue | None = None) -> Config:
    """The configuration that `text` holds. With a `catalogue`, the ids of deployments must be in it too.

    Raises:
        ConfigError: with every problem found, each with file, line and field; no message repeats a secret.
    """
    document = read_document(text, file=file)
    problems = list(document.problems)
    if document.data is None and problems:
        raise ConfigError(problems)
    if not isinstance(document.data, dict):
        raise ConfigError([document.problem((), "must be a mapping: providers, targets, channels …")])
    problems += [document.problem(path, message) for path, message in references(document.data, catalogue=catalogue)]
    section = _validated(FileIn, document, problems)
    if section is None or problems:
        raise ConfigError(_in_order(problems))
    return build_config(section)


def load_target(data: Mapping[str, object], *, config: Config, catalogue: Catalogue | None = None) -> Target:
    """A target made by the API, from a JSON body with the keys of a target in the file.

    Raises:
        ConfigError: as `load_config`, with fields of the body and no lines.
    """
    document = Document(data=dict(data))
    problems = [document.problem(path, message) for path, message in misplaced_secrets(document.data, ())]
    section = _validated(TargetIn, document, problems)
    if section is None:
        raise ConfigError(problems)
    for key, name, known in (
        ("provider", section.provider, config.providers),
        ("recipe", section.recipe, config.recipes),
    ):
        if name not in known:
            problems.append(Problem(message=f"unknown {key} '{name}'{suggest(name, known)}", field=key))
    for deadline, seconds in section.deadlines.model_dump().items():
        if seconds is not None and seconds >= section.every:
            problems.append(Problem(message="cannot end within the interval", field=f"deadlines.{deadline}"))
    if catalogue is not None and section.deployment is not None:
        found = unknown_ids(section.deployment.model_dump(), catalogue=catalogue, at=("deployment",))
        problems += [document.problem(path, message) for path, message in found]
    if problems:
        raise ConfigError(problems)
    return build_target(section, providers=config.providers, recipes=config.recipes, origin="api")


def load_channel(name: str, data: Mapping[str, object]) -> Channel:
    """A channel made by the API, from a JSON body with the keys of a channel in the file.

    Raises:
        ConfigError: as `load_config`, with fields of the body and no lines.
    """
    document = Document(data=dict(data))
    problems: list[Problem] = []
    section = _validated(ChannelIn, document, problems)
    if section is None:
        raise ConfigError(problems)
    return build_channel(name, section, origin="api")


def _validated(shape: type[S], document: Document, problems: list[Problem]) -> S | None:
    try:
        return shape.model_validate(document.data)
    except ValidationError as error:
        problems += complaints(error, document=document, root=shape)
        return None


def _in_order(problems: list[Problem]) -> list[Problem]:
    """By line, without what is said twice of one field."""
    unique = {(problem.line, problem.field, problem.message): problem for problem in problems}
    return sorted(unique.values(), key=lambda problem: (problem.line or 0, problem.field))
