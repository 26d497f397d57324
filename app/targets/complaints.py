"""Pydantic's errors as problems of a config file: file, line, dotted field, and a sentence without the value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from app.errors import Problem
from app.targets.document import Document, Path


def suggest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'every'?`, or nothing when no known word is near."""
    near = get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


def complaints(error: ValidationError, *, document: Document, root: type[BaseModel]) -> list[Problem]:
    """Every error as a problem, in the order of the file."""
    found = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        path = tuple(part for part in detail["loc"] if part != "[key]")
        found.append(document.problem(path, _sentence(detail["type"], detail["msg"], path, root)))
    return found


def _sentence(kind: str, message: str, path: Path, root: type[BaseModel]) -> str:
    match kind:
        case "extra_forbidden":
            return f"unknown key{suggest(str(path[-1]), known_keys(root, path[:-1]))}"
        case "missing":
            return "is required"
        case "model_type" | "dict_type":
            return "must be a mapping of keys to values"
        case "list_type":
            return "must be a list"
        case _:
            plain = message.removeprefix("Value error, ").replace("Input should be", "must be").replace("List should", "must")
            return plain.replace("String should", "must").replace(" after validation, not 0", "")


def known_keys(root: type[BaseModel], path: Sequence[str | int]) -> tuple[str, ...]:
    """The keys that a section at `path` may have."""
    here: Any = root
    for part in path:
        here = _step(here, part)
    return tuple(_keys(here)) if _is_section(here) else ()


def _keys(section: type[BaseModel]) -> Mapping[str, str]:
    return {info.alias or name: name for name, info in section.model_fields.items()}


def _is_section(kind: Any) -> bool:  # noqa: ANN401 - a type expression
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _step(kind: Any, part: str | int) -> Any:  # noqa: ANN401 - a type expression
    if _is_section(kind):
        name = _keys(kind).get(str(part))
        return _bare(kind.model_fields[name].annotation) if name else None
    arguments = get_args(kind)
    return _bare(arguments[-1]) if arguments and get_origin(kind) is not Literal else None


def _bare(kind: Any) -> Any:  # noqa: ANN401 - a type expression
    """Without `| None`."""
    if get_origin(kind) in {Union, UnionType}:
        return next(part for part in get_args(kind) if part is not NoneType)
    return kind
