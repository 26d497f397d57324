"""YAML text as plain data that still knows its lines.

Only plain data comes out: no tags, no timestamps, no `off` that is False or `12:30` that is 750 (YAML 1.1's traps).
A key given twice is a problem, since the first would be lost in silence. And one thing is read that YAML refuses: a
reference `${env:NAME}` needs no quotes inside `{…}`, where its braces would end the mapping.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from app.errors import Problem

Path = tuple[str | int, ...]
MAX_NODES = 200_000
"""Aliases can make a small file endless; this is some 20,000 targets."""

_REFERENCE = re.compile(r"\$\{((?:env|file):[^{}\r\n]*)\}")
_HIDDEN = "$\ue000\\1\ue001"
_SHOW = str.maketrans("\ue000\ue001", "{}")

_TAG = "tag:yaml.org,2002:"


class _Loader(yaml.SafeLoader):
    """A loader that knows the scalars of YAML 1.2's core schema, and merge keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's registry


_SCALARS = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9][0-9_]*", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
)
for _name, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(f"^(?:{_pattern})$"), _first)


@dataclass(slots=True)
class Document:
    """`data` is None where the text could not be read; `lines` has the line (from 1) of each path."""

    file: str = ""
    data: object = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: Path) -> int | None:
        """The line of a path, or of the nearest thing around it."""
        for end in range(len(path), -1, -1):
            if (found := self.lines.get(path[:end])) is not None:
                return found
        return None

    def problem(self, path: Path, message: str) -> Problem:
        """A problem at a path."""
        return Problem(message=message, field=dotted(path), file=self.file, line=self.line(path))


def dotted(path: Path) -> str:
    """A path as it is written in messages: `targets.0.every`."""
    return ".".join(map(str, path))


def read_document(text: str, *, file: str = "") -> Document:
    """Read one YAML document. Never raises: what is wrong is in `problems`, with its line and without its text."""
    document = Document(file=file)
    try:
        node = yaml.compose(_REFERENCE.sub(_HIDDEN, text), Loader=_Loader)
        document.data = _Walk(document).value(node, ()) if node is not None else {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        reason = "; ".join(part for part in (error.context, error.problem) if part)
        document.problems.append(Problem(message=f"not valid YAML: {reason}", file=file, line=line))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        document.problems.append(Problem(message="not valid YAML: a character that may not stand here", file=file, line=line))
    except RecursionError:
        document.problems.append(Problem(message="not valid YAML: nested too deeply", file=file))
    return document


_READ: Mapping[str, Callable[[str], object]] = {
    "str": str,
    "merge": str,
    "null": lambda _text: None,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "int": int,
    "float": float,
}


class _Walk:
    """One walk from nodes to data, noting lines and problems on the way."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.above: set[int] = set()
        self.nodes = 0

    def value(self, node: yaml.Node, path: Path) -> object:
        """The data under a node."""
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        self.nodes += 1
        if id(node) in self.above:
            self._wrong(path, "an alias to something that contains it")
            return None
        if self.nodes > MAX_NODES:
            if self.nodes == MAX_NODES + 1:
                self._wrong((), "too large once its aliases are followed")
            return None
        self.above.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            return self._scalar(node, path)
        finally:
            self.above.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        found: dict[str, object] = {}
        own: dict[str, int] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._wrong(path, "a key must be plain text")
                continue
            if key_node.tag == _TAG + "merge":
                merged.append(value_node)
                continue
            key, line = str(key_node.value).translate(_SHOW), key_node.start_mark.line + 1
            if key in own:
                self.document.lines[(*path, key)] = line
                self._wrong((*path, key), f"given twice, first on line {own[key]}")
                continue
            own[key] = line
            self.document.lines[(*path, key)] = line
            found[key] = self.value(value_node, (*path, key))
        return {**self._merge(merged, path, own), **found}

    def _merge(self, nodes: list[yaml.Node], path: Path, own: Mapping[str, int]) -> dict[str, object]:
        """What `<<` brings in: of several mappings the first wins, and every key of one's own wins over all."""
        brought: dict[str, object] = {}
        for source in self._sources(nodes):
            if not isinstance(source, yaml.MappingNode):
                self._wrong(path, "<< takes a mapping or a list of mappings")
                continue
            for key, value in _as_mapping(self.value(source, (*path, "<<"))).items():
                if key not in own and key not in brought:
                    brought[key] = value
                    self.document.lines[(*path, key)] = source.start_mark.line + 1
        return brought

    @staticmethod
    def _sources(nodes: list[yaml.Node]) -> Iterator[yaml.Node]:
        for node in nodes:
            if isinstance(node, yaml.SequenceNode):
                yield from node.value
            else:
                yield node

    def _scalar(self, node: yaml.Node, path: Path) -> object:
        kind, text = node.tag.removeprefix(_TAG), str(node.value).translate(_SHOW)
        if kind not in _READ:
            self._wrong(path, "a tag that is not understood; write plain values")
            return None
        try:
            return _READ[kind](text)
        except (ValueError, KeyError):
            self._wrong(path, "not a value of the type that its tag names")
            return None

    def _wrong(self, path: Path, message: str) -> None:
        self.document.problems.append(self.document.problem(path, message))


def _as_mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
