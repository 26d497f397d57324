"""Rows of one's own: a folder of CSV files, or one YAML or JSON file."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from app.catalog.rows import Row
from app.errors import ConfigError, Problem

Own: TypeAlias = Mapping[str, Sequence[tuple[Row, str, int | None]]]
"""Section -> (row, file, line from 1 where it is known)."""

SECTIONS = {"hardware": "hardware.csv", "models": "models.csv", "quantizations": "quant.csv"}


def own_rows(path: Path) -> Own:
    """Rows as text by column, not yet understood.

    Raises:
        ConfigError: no such file, not readable, or not built as it should be.
    """
    if path.is_dir():
        return {section: _csv(path / name) for section, name in SECTIONS.items() if (path / name).is_file()}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _problem(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return _document(path, text)


def _csv(path: Path) -> list[tuple[Row, str, int | None]]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restval="")
        return [({k: v for k, v in row.items() if k is not None}, str(path), reader.line_num) for row in reader]


def _document(path: Path, text: str) -> Own:
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _problem(path, f"is neither YAML nor JSON: {error}") from None
    if not isinstance(found, dict) or not set(found) <= set(SECTIONS):
        raise _problem(path, f"must hold lists named {', '.join(SECTIONS)}, and nothing else")
    rows = {}
    for section, listed in found.items():
        if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
            raise _problem(path, "must be a list of rows", field=section)
        rows[section] = [
            ({str(k): "" if v is None else str(v) for k, v in row.items()}, f"{path}: {section}[{index}]", None)
            for index, row in enumerate(listed)
        ]
    return rows


def _problem(path: Path, message: str, *, field: str = "") -> ConfigError:
    return ConfigError([Problem(file=str(path), field=field, message=message)])
