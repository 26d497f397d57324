"""`bandwatch db`: the schema, what is stored, and what retention has outlived."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from app.storage.census import Census
    from app.storage.upkeep import Kept
    from app.targets.model import Retention

_DATA = click.option("--data", type=click.Path(path_type=Path), default=None, help="Folder of everything kept on disk.")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
_CONFIG = click.option(
    "--config", type=click.Path(path_type=Path), default=None, help="Config file that says what is kept for how long."
)


@click.group("db")
def command() -> None:
    """Migrate, inspect and prune the database."""


@command.command("upgrade")
@_DATA
@_JSON
def upgrade(*, data: Path | None, as_json: bool) -> None:
    """Bring the schema to what this program knows, and make the partitions of the days ahead."""
    from app.cli.attach import command_settings, on_database
    from app.clock import SystemClock
    from app.storage.database import Database
    from app.storage.migrate import revisions
    from app.storage.migrate import upgrade as migrate
    from app.storage.partitions import create_ahead

    async def work(database: Database) -> tuple[str, str, int]:
        await database.check()
        before, _ = await revisions(database)
        after = await migrate(database)
        return before, after, await create_ahead(database, now=SystemClock().now())

    before, after, days_ahead = on_database(command_settings(data), work, migrate=None)
    if as_json:
        _print_json({"before": before, "revision": after, "days_ahead": days_ahead})
    else:
        came = "was up to date already" if before == after else f"came from {before}"
        click.echo(f"schema {after} ({came}); partitions for {days_ahead} days ahead")


@command.command("status")
@_DATA
@_JSON
def status(*, data: Path | None, as_json: bool) -> None:
    """Show the migration, the partitions, the sizes and what waits. Exit code 1 when the schema is another one."""
    from app.cli.attach import command_settings, on_database
    from app.clock import SystemClock
    from app.storage.census import take_census

    census = on_database(command_settings(data), lambda database: take_census(database, now=SystemClock().now()), migrate=None)
    if as_json:
        _print_json({**_plain(census), "up_to_date": census.up_to_date})
    else:
        for line in _lines(census):
            click.echo(line)
    if not census.up_to_date:
        click.get_current_context().exit(1)


@command.command("prune")
@_CONFIG
@_DATA
@_JSON
def prune(*, config: Path | None, data: Path | None, as_json: bool) -> None:
    """Roll up what is complete, then drop what retention has outlived. `serve` does the same every few minutes."""
    from app.cli.attach import command_settings, on_database
    from app.clock import SystemClock
    from app.storage.upkeep import upkeep

    settings = command_settings(data)
    retention = _retention(config or settings.config)
    kept = on_database(settings, lambda database: upkeep(database, retention=retention, now=SystemClock().now()))
    if as_json:
        _print_json(_plain(kept))
        return
    dropped = ", ".join(day.isoformat() for day in kept.dropped) or "none"
    click.echo(f"days of runs dropped: {dropped}; rows trimmed: {kept.trimmed}; partitions for {kept.days_ahead} days ahead")


def _retention(config: Path | None) -> Retention:
    from app.bootstrap.config import DEFAULT_FILE, catalog_of, read_config
    from app.targets.model import Retention

    path = DEFAULT_FILE if config is None and DEFAULT_FILE.is_file() else config
    return Retention() if path is None else read_config(path, catalog=catalog_of(path))[0].retention


def _lines(census: Census) -> list[str]:
    state = "up to date" if census.up_to_date else f"needs {census.newest_revision}: bandwatch db upgrade"
    lines = [
        f"postgres    {census.postgres}",
        f"schema      {census.revision} ({state})",
        f"size        {_size(census.database_bytes)}",
    ]
    if (days := census.partitions) is not None:
        lines.append(f"partitions  {days.count}, from {days.oldest} to {days.newest}, {days.days_ahead} days ahead")
    if (work := census.work) is not None:
        until = ", ".join(f"{step} s: {at:%Y-%m-%d %H:%M}" for step, at in sorted(work.rolled_up_until.items())) or "not yet"
        lines += [
            f"schedule    walked until {work.scheduled_until or 'not yet'}",
            f"rollups     until {until}",
            f"jobs        {work.jobs_queued} queued, {work.jobs_running} running",
            f"alerts      {work.announcements_pending} pending, {work.announcements_dead} dead",
        ]
    full = [table for table in census.tables if table.rows > 0]
    return lines + [f"  {table.name:20} {table.rows:>12} rows {_size(table.bytes):>10}" for table in full]


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.2f} GB"


def _plain(value: Census | Kept) -> dict[str, object]:
    import msgspec

    plain: dict[str, object] = msgspec.to_builtins(value)
    return plain


def _print_json(document: dict[str, object]) -> None:
    import json

    click.echo(json.dumps(document))
