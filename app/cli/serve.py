"""`bandwatch serve`: the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import click

ROLES = ("all", "api", "scheduler", "worker", "courier")


@click.command("serve")
@click.option("--config", type=click.Path(path_type=Path), default=None, help="Config file; bandwatch.yaml if it is there.")
@click.option("--role", "roles", type=click.Choice(ROLES), multiple=True, default=("all",), show_default=True)
@click.option("--location", default=None, help="The location whose probes this worker runs.")
@click.option("--host", default=None, help="Address to listen on; 127.0.0.1 by default.")
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="Port to listen on; 8080 by default.")
@click.option("--data", type=click.Path(path_type=Path), default=None, help="Folder of everything kept on disk.")
def command(
    *, config: Path | None, roles: tuple[str, ...], location: str | None, host: str | None, port: int | None, data: Path | None
) -> None:
    """Run the service: schedule, probe, judge, alert, and the API, or the roles of it that are named."""
    from app.bootstrap.service import ROLES as EVERY
    from app.bootstrap.service import Service
    from app.settings import load_settings

    stated = {"location": location, "host": host, "port": port, "data": data}
    settings = load_settings().model_copy(update={key: value for key, value in stated.items() if value is not None})
    service = Service(settings=settings, roles=EVERY if "all" in roles else roles, config=config)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(service.run())


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Uvloop where it exists."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
