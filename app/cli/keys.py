"""`bandwatch keys`: who may use the API. Only hashes are stored; a secret is shown once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from app.storage.queries.keys import ApiKey

SCOPES = ("read", "write", "admin")
ACTOR = "cli"
_DATA = click.option("--data", type=click.Path(path_type=Path), default=None, help="Folder of everything kept on disk.")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")


@click.group("keys")
def command() -> None:
    """Create, list and revoke API keys."""


@command.command("create")
@click.option("--name", required=True, help="What or whom the key is for.")
@click.option("--scope", type=click.Choice(SCOPES), default="read", show_default=True, help="Each includes those before it.")
@_DATA
@_JSON
def create(*, name: str, scope: str, data: Path | None, as_json: bool) -> None:
    """Make a key, and show its secret: this once, and never again."""
    from app.cli.attach import command_settings, on_database
    from app.clock import SystemClock
    from app.errors import UsageError
    from app.storage.database import Database
    from app.storage.queries.keys import Scope, create_key, write_audit
    from app.storage.queries.session import writing

    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise UsageError("--name must be 1 to 100 printable characters")

    async def work(database: Database) -> tuple[ApiKey, str]:
        now = SystemClock().now()
        async with writing(database) as session:
            key, secret = await create_key(session, name=name.strip(), scope=Scope(scope), now=now)
            detail = {"name": key.name, "scope": key.scope.value}
            await write_audit(session, at=now, actor=ACTOR, action="key.create", subject=key.id, detail=detail)
        return key, secret

    key, secret = on_database(command_settings(data), work, migrate=True)
    if as_json:
        click.echo(json.dumps({**_plain(key), "secret": secret}))
        return
    click.echo(f"key {key.id} ({key.scope}) for {key.name}; its secret, shown only now:", err=True)
    click.echo(secret)


@command.command("list")
@_DATA
@_JSON
def list_(*, data: Path | None, as_json: bool) -> None:
    """Show all keys, revoked ones too, without their secrets."""
    from app.cli.attach import command_settings, on_database
    from app.storage.database import Database
    from app.storage.queries.keys import list_keys
    from app.storage.queries.session import reading

    async def work(database: Database) -> tuple[ApiKey, ...]:
        async with reading(database) as session:
            return await list_keys(session)

    keys = on_database(command_settings(data), work)
    if as_json:
        click.echo(json.dumps([_plain(key) for key in keys]))
        return
    for key in keys:
        state = "active" if key.revoked_at is None else f"revoked {key.revoked_at:%Y-%m-%d %H:%M}"
        click.echo(f"{key.id}  {key.scope:5}  made {key.created_at:%Y-%m-%d %H:%M}  {state:24}  {key.name}")
    if not keys:
        click.echo("there is no key yet; bandwatch keys create makes one", err=True)


@command.command("revoke")
@click.argument("key_id", metavar="ID")
@_DATA
@_JSON
def revoke(*, key_id: str, data: Path | None, as_json: bool) -> None:
    """End a key at once; a second time changes nothing."""
    from app.cli.attach import command_settings, on_database
    from app.clock import SystemClock
    from app.storage.database import Database
    from app.storage.queries.keys import revoke_key, write_audit
    from app.storage.queries.session import writing

    async def work(database: Database) -> ApiKey:
        now = SystemClock().now()
        async with writing(database) as session:
            key = await revoke_key(session, key_id, now=now)
            await write_audit(session, at=now, actor=ACTOR, action="key.revoke", subject=key.id)
        return key

    key = on_database(command_settings(data), work)
    if as_json:
        click.echo(json.dumps(_plain(key)))
    else:
        click.echo(f"key {key.id} for {key.name} is revoked")


def _plain(key: ApiKey) -> dict[str, object]:
    import msgspec

    plain: dict[str, object] = msgspec.to_builtins(key)
    return plain
