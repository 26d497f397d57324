"""The catalogue out of its files; look-up by id, alias or anything people write, with near matches."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from app.catalog import rows as made
from app.catalog.model import Accelerator, Model, ProviderDefault, Quantization
from app.catalog.names import Names, fold
from app.catalog.rows import Row, Rows
from app.errors import ConfigError, NotFoundError, Problem, UsageError

__all__ = ["Catalog", "fold", "load_catalog"]

T = TypeVar("T", Accelerator, Model, Quantization)
DATA = Path(__file__).parent / "data"
FILES = {"hardware": "hardware.csv", "models": "models.csv", "quantizations": "quant.csv"}
"""Section of a file of one's own -> the shipped file with the same columns."""

_SHORT = {
    "int4": "GPTQ-INT4",
    "w4a16": "GPTQ-INT4",
    "gptq": "GPTQ-INT4",
    "gptq-int8": "INT8-WO",
    "w8a16": "INT8-WO",
    "fp8-e4m3": "FP8",
    "e4m3": "FP8",
    "w8a8": "INT8",
    "f16": "FP16",
    "float16": "FP16",
    "half": "FP16",
    "bfloat16": "BF16",
    "f32": "FP32",
    "float32": "FP32",
    "nf4-dq": "NF4",
    "mlx4": "MLX-4BIT",
    "4bit": "MLX-4BIT",
    "8bit": "MLX-8BIT",
}


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """What is known. Look-ups raise NotFoundError with near matches, or UsageError where a name fits several."""

    accelerators: Mapping[str, Accelerator]
    models: Mapping[str, Model]
    quantizations: Mapping[str, Quantization]
    providers: Mapping[str, ProviderDefault] = field(default_factory=dict)
    _names: dict[str, Names] = field(default_factory=dict, compare=False, repr=False)

    def hardware_of(self, text: str) -> Accelerator:
        """The accelerator of an id or a marketing name."""
        return self._find("hardware", text, self.accelerators)

    def model(self, text: str) -> Model:
        """The model of an id, a provider's id for it, or either without its ending (`-instruct`, `:free`, a date)."""
        return self._find("model", text, self.models)

    def quantization(self, text: str) -> Quantization:
        """The format of an id (`INT4` is `GPTQ-INT4`)."""
        return self._find("quantization", _SHORT.get(text.strip().lower(), text), self.quantizations)

    def provider_of(self, host: str) -> ProviderDefault | None:
        """What is known of the machines behind a host name; None where nobody knows them."""
        name = host.strip().lower().rstrip(".")
        found = (row for row in self.providers.values() if any(name == h or name.endswith(f".{h}") for h in row.hosts))
        return next(found, None)

    def _find(self, kind: str, text: str, rows: Mapping[str, T]) -> T:
        if text in rows:
            return rows[text]
        if kind not in self._names:
            self._names[kind] = Names.of(_named(kind, rows))
        names = self._names[kind]
        ids = names.ids(text)
        if len(ids) == 1:
            return rows[ids[0]]
        if ids:
            raise UsageError(f"{kind} {text!r} may mean {', '.join(sorted(ids))}; name one of them")
        raise NotFoundError(f"no {kind} {text!r} in the catalogue", near=names.near(text))


def _named(kind: str, rows: Mapping[str, Accelerator | Model | Quantization]) -> Iterator[tuple[str, Iterable[str]]]:
    """Ids with their other names, without making the rows where they are still raw."""
    name_of: Callable[[Row], Iterable[str]] = {
        "hardware": made.hardware_names,
        "model": made.aliases_of,
        "quantization": lambda row: (row["name"],),
    }[kind]
    if isinstance(rows, Rows):
        yield from ((row_id, name_of(row)) for row_id, row in rows.raw.items())
        return
    for row_id, row in rows.items():
        yield row_id, row.aliases if isinstance(row, Model) else (row.name,)


def load_catalog(extra: Path | None = None) -> Catalog:
    """The shipped files, and one's own rows, which win over those of the same id.

    `extra` is a folder with some of `hardware.csv`, `models.csv`, `quant.csv`, or one YAML or JSON file with lists
    `hardware`, `models`, `quantizations` of rows with the same columns.

    Raises:
        ConfigError: a row of one's own that cannot be used, with file and line; or no such file.
    """
    own: Mapping[str, Sequence[tuple[Row, str, int | None]]] = {}
    if extra is not None:
        from app.catalog.own import own_rows

        own = own_rows(extra)
    return Catalog(
        accelerators=_rows("hardware", made.accelerator, own),
        models=_rows("models", made.model, own),
        quantizations=_rows("quantizations", made.quantization, own),
        providers=Rows({row["id"]: row for row in read_csv(DATA / "providers.csv")}, made.provider),
    )


def _rows(section: str, make: Callable[[Row], T], own: Mapping[str, Sequence[tuple[Row, str, int | None]]]) -> Rows[T]:
    key = "model_id" if section == "models" else "id"
    raw: dict[str, Row] = {row[key]: row for row in read_csv(DATA / FILES[section])}
    for row, file, line in own.get(section, ()):
        try:
            make(row)
            raw[row[key]] = row
        except KeyError as error:
            raise _unusable(file, line, f"{error.args[0]} is missing") from None
        except ValueError as error:
            raise _unusable(file, line, str(error)) from None
    return Rows(raw, make)


def _unusable(file: str, line: int | None, why: str) -> ConfigError:
    return ConfigError([Problem(file=file, line=line, message=f"not usable: {why}")])


def read_csv(path: Path) -> Iterator[Row]:
    """The rows of a file, as text by column."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        columns = next(reader, [])
        yield from (dict(zip(columns, row, strict=False)) for row in reader if row)
