"""Tables as other tools read them: CSV, NDJSON, Parquet, written row by row."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, fields
from types import TracebackType
from typing import IO, Any, Protocol, Self

import msgspec

from app.errors import UsageError
from app.storage.queries.runs import RunRow

NAMES = tuple(field.name for field in fields(RunRow))
GROUP = 50_000
"""Rows of a Parquet row group: what is held in memory."""


class Sheet(Protocol):
    """A table that takes rows; leaving it writes the end."""

    def add(self, row: RunRow) -> None:
        """Write one row."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def sheet_of(form: str, file: IO[bytes]) -> Sheet:
    """The sheet of a format, over a binary file.

    Raises:
        UsageError: Parquet without pyarrow.
    """
    match form:
        case "csv":
            return CsvSheet(file)
        case "ndjson":
            return JsonSheet(file)
        case _:
            return ParquetSheet(file)


@dataclass(slots=True)
class CsvSheet:
    """RFC 4180, with a header line."""

    file: IO[bytes]

    def __enter__(self) -> Self:
        from app.api.routes.runs import csv_line

        self.file.write(csv_line(NAMES))
        return self

    def add(self, row: RunRow) -> None:
        """Write one line."""
        from app.api.routes.runs import csv_line

        self.file.write(csv_line(astuple(row)))

    def __exit__(self, *_: object) -> None:
        return


@dataclass(slots=True)
class JsonSheet:
    """One JSON object a line."""

    file: IO[bytes]

    def __enter__(self) -> Self:
        return self

    def add(self, row: RunRow) -> None:
        """Write one line."""
        self.file.write(msgspec.json.encode(row) + b"\n")

    def __exit__(self, *_: object) -> None:
        return


@dataclass(slots=True)
class ParquetSheet:
    """Parquet by pyarrow, which is an extra: `pip install bandwatch[parquet]`."""

    file: IO[bytes]
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _schema: Any = None
    _writer: Any = None

    def __enter__(self) -> Self:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise UsageError("--format parquet needs pyarrow: pip install 'bandwatch[parquet]'") from None
        kinds = {"datetime": pa.timestamp("us", tz="UTC"), "bool": pa.bool_(), "int": pa.int64(), "float": pa.float64()}
        self._schema = pa.schema(
            [(each.name, kinds.get(str(each.type).split(" ", 1)[0], pa.string())) for each in fields(RunRow)]
        )
        self._writer = pq.ParquetWriter(self.file, self._schema, compression="zstd")
        return self

    def add(self, row: RunRow) -> None:
        """Keep one row until its group is full."""
        self._rows.append(astuple(row))
        if len(self._rows) >= GROUP:
            self._flush()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa

        columns = list(zip(*self._rows, strict=True)) or [()] * len(NAMES)
        arrays = [pa.array(column, type=each.type) for column, each in zip(columns, self._schema, strict=True)]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows.clear()
