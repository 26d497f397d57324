"""`bandwatch catalog`: what is known of hardware, models and formats."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click


@click.command("catalog")
@click.argument("kind", type=click.Choice(["hardware", "models", "quantizations"]))
@click.argument("query", required=False)
@click.option("--catalog", "own", type=click.Path(path_type=Path), default=None, help="Rows of one's own: a file or a folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def command(*, kind: str, query: str | None, own: Path | None, as_json: bool) -> None:
    """Show the catalogue, or what of it holds QUERY in its id, name or aliases."""
    from app.catalog.load import fold, load_catalog
    from app.errors import NotFoundError

    catalog = load_catalog(own)
    rows: list[Any] = list(
        {"hardware": catalog.accelerators, "models": catalog.models, "quantizations": catalog.quantizations}[kind].values()
    )
    if query is not None:
        wanted = fold(query)
        rows = [row for row in rows if any(wanted in fold(name) for name in _names(row))]
        if not rows:
            find = {"hardware": catalog.hardware_of, "models": catalog.model, "quantizations": catalog.quantization}[kind]
            try:
                rows = [find(query)]
            except NotFoundError as error:
                raise NotFoundError(f"nothing in {kind} fits {query!r}", near=error.near) from None
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows]))
        return
    for row in rows:
        click.echo(_line(kind, row))


def _names(row: Any) -> tuple[str, ...]:  # noqa: ANN401 - one of three
    return (row.id, *getattr(row, "aliases", ()), getattr(row, "name", ""))


def _line(kind: str, row: Any) -> str:  # noqa: ANN401 - one of three
    if kind == "hardware":
        compute = "-" if row.flops_16 is None else f"{row.flops_16 / 1e12:g} TFLOPS"
        return (
            f"{row.id:28} {row.kind:9} {row.memory_bytes / 1e9:8g} GB {row.bandwidth / 1e9:10g} GB/s {compute:>14}  "
            f"{row.confidence:6}  {row.source}"
        )
    if kind == "models":
        streamed = "-" if row.streamed is None else f"{row.streamed / 1e9:g}"
        total = "-" if row.total is None else f"{row.total / 1e9:g}"
        return f"{row.id:48} {total:>8}B total {streamed:>8}B streamed {row.layers:4} layers  {row.native}"
    bits = "-" if row.bits is None else f"{row.bits:g}"
    return f"{row.id:16} {row.family:6} {bits:>7} bit  covers {row.covers:8} {row.name}"
