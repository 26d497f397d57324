"""What the sections of a config file say of each other: names that must exist, names that must not exist twice, time
that must suffice, secrets that may be named only where they are resolved.

Works on the plain data, so that a mistake in one field does not hide these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Protocol

from app.errors import NotFoundError
from app.targets.complaints import suggest
from app.targets.document import Path
from app.targets.recipes import BUILTIN
from app.units import format_duration, parse_duration

Found = Iterator[tuple[Path, str]]
_SECRET_KEYS = frozenset({"api_key", "secret", "url", "urls"})


class Catalogue(Protocol):
    """Who knows the ids of models, hardware and quantizations; each look-up raises NotFoundError with near matches."""

    def model(self, text: str, /) -> object:
        """A model."""
        ...

    def hardware_of(self, text: str, /) -> object:
        """An accelerator."""
        ...

    def quantization(self, text: str, /) -> object:
        """A number format."""
        ...


def references(data: Mapping[str, object], *, catalogue: Catalogue | None = None) -> Found:
    """Everything wrong between sections, as (path, sentence)."""
    yield from _targets(data)
    yield from _deadlines(data)
    yield from _routing(data)
    yield from _recipes(data)
    yield from misplaced_secrets(data, ())
    if catalogue is not None:
        for index, target in _items(data, "targets"):
            yield from unknown_ids(_section(target, "deployment"), catalogue=catalogue, at=("targets", index, "deployment"))


def unknown_ids(deployment: Mapping[str, object], *, catalogue: Catalogue, at: Path) -> Found:
    """Ids of a deployment that the catalogue does not know."""
    look_ups: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("model_spec", catalogue.model),
        ("hardware", catalogue.hardware_of),
        ("quantization", catalogue.quantization),
    )
    for key, look_up in look_ups:
        if isinstance(text := deployment.get(key), str):
            try:
                look_up(text)
            except NotFoundError as error:
                yield (*at, key), str(error)


def misplaced_secrets(value: object, path: Path) -> Found:
    """References to secrets in fields where nobody would resolve them."""
    match value:
        case dict():
            for key, inner in value.items():
                if key not in _SECRET_KEYS:
                    yield from misplaced_secrets(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield from misplaced_secrets(inner, (*path, index))
        case str() if "${env:" in value or "${file:" in value:
            yield path, "a reference is resolved only in api_key, secret and the url of a channel"
        case _:
            pass


def _targets(data: Mapping[str, object]) -> Found:
    providers = _section(data, "providers")
    recipes = {**BUILTIN, **_section(data, "recipes")}
    first: dict[str, int] = {}
    for index, target in _items(data, "targets"):
        if isinstance(name := target.get("name"), str):
            if name in first:
                yield ("targets", index, "name"), f"'{name}' is the name of targets.{first[name]} too"
            first.setdefault(name, index)
        yield from _exists(target.get("provider"), providers, what="provider", at=("targets", index, "provider"))
        yield from _exists(target.get("recipe"), recipes, what="recipe", at=("targets", index, "recipe"))
        yield from _twice(target.get("locations"), at=("targets", index, "locations"))


def _deadlines(data: Mapping[str, object]) -> Found:
    """A probe that may last longer than its interval would be skipped or overlap its next."""
    shared = _section(data, "deadlines")
    for index, target in _items(data, "targets"):
        every_s = _seconds(target.get("every"), default=60.0)
        own = _section(target, "deadlines")
        for key in ("connect", "first_token", "stall", "total"):
            stated = own.get(key, shared.get(key))
            if every_s is None or (seconds := _seconds(stated, default=None)) is None or seconds < every_s:
                continue
            at: Path = ("targets", index, "deadlines", key) if key in own else ("deadlines", key)
            name = target.get("name", index)
            yield (
                at,
                f"{key} of {format_duration(seconds)} cannot end within the interval of '{name}', {format_duration(every_s)}",
            )


def _routing(data: Mapping[str, object]) -> Found:
    channels, providers = _section(data, "channels"), _section(data, "providers")
    for index, route in _items(data, "routes"):
        named = route.get("channels")
        yield from _twice(named, at=("routes", index, "channels"))
        for place, channel in enumerate(named if isinstance(named, list) else []):
            yield from _exists(channel, channels, what="channel", at=("routes", index, "channels", place))
    for part in ("routes", "maintenance"):
        for index, item in _items(data, part):
            provider = _section(item, "match").get("provider")
            yield from _exists(provider, providers, what="provider", at=(part, index, "match", "provider"))


def _recipes(data: Mapping[str, object]) -> Found:
    for name in _section(data, "recipes"):
        if name in BUILTIN:
            yield ("recipes", name), "is built in and fixed, so that runs stay comparable; give yours another name"


def _exists(name: object, known: Mapping[str, object], *, what: str, at: Path) -> Found:
    if isinstance(name, str) and name not in known:
        yield at, f"unknown {what} '{name}'{suggest(name, known)}"


def _twice(names: object, *, at: Path) -> Found:
    seen: set[str] = set()
    for index, name in enumerate(names if isinstance(names, list) else []):
        if isinstance(name, str):
            if name in seen:
                yield (*at, index), f"'{name}' is given twice"
            seen.add(name)


def _items(data: Mapping[str, object], key: str) -> Iterator[tuple[int, dict[str, object]]]:
    value = data.get(key)
    for index, item in enumerate(value if isinstance(value, list) else []):
        if isinstance(item, dict):
            yield index, item


def _section(data: Mapping[str, object], key: str) -> dict[str, object]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _seconds(value: object, *, default: float | None) -> float | None:
    """Seconds of a duration; `default` when it is not stated, None when it cannot be read (which is reported elsewhere)."""
    if value is None:
        return default
    with suppress(ValueError, AttributeError):
        return parse_duration(value) if isinstance(value, str) else None
    return None
