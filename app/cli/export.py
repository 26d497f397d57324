"""`bandwatch export`: runs as a table for other tools, streamed, with no secret in it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

if TYPE_CHECKING:
    from app.cli.tabular import Sheet
    from app.secrets import Redactor
    from app.storage.database import Database
    from app.storage.queries.runs import RunFilter, RunRow

FORMATS = ("csv", "ndjson", "parquet")


@click.command("export")
@click.option("--target", default=None, help="Only this target's runs.")
@click.option("--from", "since", default=None, help="Runs due at this instant or later: ISO 8601, or a duration ago.")
@click.option("--to", "until", default=None, help="Runs due before this instant.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="csv", show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), default=None, help="A file, not standard output.")
@click.option("--data", type=click.Path(path_type=Path), default=None, help="Folder of everything kept on disk.")
def command(
    *, target: str | None, since: str | None, until: str | None, form: str, output: Path | None, data: Path | None
) -> None:
    """Write runs, the newest first: CSV with a header line, one JSON object a line, or Parquet."""
    from app.cli.attach import command_settings, on_database, redactor_of
    from app.cli.tabular import sheet_of
    from app.clock import SystemClock
    from app.storage.queries.runs import RunFilter

    now = SystemClock().now()
    wanted = RunFilter(target=target, since=instant_of("--from", since, now=now), until=instant_of("--to", until, now=now))
    if wanted.since is not None and wanted.until is not None and wanted.since >= wanted.until:
        raise click.UsageError("--from must lie before --to")
    settings = command_settings(data)
    redactor = redactor_of(settings)

    async def work(database: Database) -> int:
        await _known(database, target)
        with _destination(output) as file:
            return await _write(_runs(database, wanted, redactor), sheet_of(form, file))

    count = on_database(settings, work)
    print(f"{count} runs", file=sys.stderr)


def instant_of(option: str, text: str | None, *, now: datetime) -> datetime | None:
    """The instant that an option names: ISO 8601 (UTC where no zone is given), or a duration before `now`.

    Raises:
        click.UsageError: it is neither.
    """
    from app.units import parse_duration

    if text is None:
        return None
    try:
        return now - timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError):
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{option}: {text!r} is no instant; write 2026-01-31, 2026-01-31T08:00Z or 24h") from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


async def _known(database: Database, target: str | None) -> None:
    """Complain of a target that nobody has heard of.

    Raises:
        NotFoundError: with those that are meant, perhaps.
    """
    from difflib import get_close_matches

    from app.errors import NotFoundError
    from app.storage.queries.runs import targets_with_runs
    from app.storage.queries.session import reading

    async with reading(database) as session:
        names = await targets_with_runs(session)
    if target is not None and target not in names:
        raise NotFoundError(f"no target '{target[:200]}' has run", near=get_close_matches(target, names, n=3, cutoff=0.5))


async def _runs(database: Database, wanted: RunFilter, redactor: Redactor) -> AsyncIterator[RunRow]:
    """The runs, without what looks like a secret in the texts that people chose."""
    from dataclasses import replace

    from app.storage.queries.runs import stream_runs
    from app.storage.queries.session import reading

    clean = lru_cache(4096)(redactor.clean)
    async with reading(database) as session:
        async for row in stream_runs(session, wanted):
            yield replace(
                row,
                target=clean(row.target),
                provider=clean(row.provider),
                model=clean(row.model),
                recipe=clean(row.recipe),
                error_class=clean(row.error_class),
            )


async def _write(rows: AsyncIterator[RunRow], sheet: Sheet) -> int:
    count = 0
    with sheet:
        async for row in rows:
            sheet.add(row)
            count += 1
    return count


@contextmanager
def _destination(output: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    from app.errors import UsageError

    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    partial = output.with_name(f".{output.name}.part")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(output)
    except OSError as error:
        raise UsageError(f"--output: cannot write {output}: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
