"""`bandwatch demo`: everything at once on simulated providers."""

from __future__ import annotations

import asyncio
import base64
import os
import secrets
import socket
from pathlib import Path

import click


@click.command("demo")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Port to listen on.")
@click.option("--data", type=click.Path(path_type=Path), default=None, help="Folder of everything kept on disk.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def command(*, host: str, port: int, data: Path | None, no_browser: bool) -> None:
    """Start embedded Postgres, six simulated providers, a webhook receiver and the service; Ctrl-C stops all of it."""
    from app.bootstrap.service import ROLES, Service
    from app.cli.serve import loop_factory
    from app.settings import load_settings
    from app.simulator.demo import SECRET_VARIABLE

    settings = load_settings().model_copy(update={"host": host, "port": port})
    folder = data if data is not None else settings.data / "demo"
    settings = settings.model_copy(update={"data": folder, "config": None, "database_url": None})
    folder.mkdir(parents=True, exist_ok=True)
    ports = _free_ports(2)
    os.environ[SECRET_VARIABLE] = _secret(folder)
    config = _write_config(folder, *ports)
    service = Service(settings=settings, roles=ROLES, config=config)
    click.echo(f"Bandwatch demo on http://{host}:{port}/  (API: /api/v1/verdicts, metrics: /metrics; Ctrl-C stops)", err=True)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(service, simulator_port=ports[0], receiver_port=ports[1], folder=folder, browse=not no_browser))


async def _run(service: object, *, simulator_port: int, receiver_port: int, folder: Path, browse: bool) -> None:
    from app.bootstrap.child import Child
    from app.simulator.demo import SECRET_VARIABLE

    simulator = Child(
        name="simulator", arguments=["-m", "app.simulator", "--port", str(simulator_port)], environment={}, grace_s=3
    )
    receiver = Child(
        name="receiver",
        arguments=[
            "-m",
            "app.alerts.receiver",
            "--port",
            str(receiver_port),
            "--secret-env",
            SECRET_VARIABLE,
            "--log",
            str(folder / "webhooks.ndjson"),
        ],
        environment={},
        grace_s=3,
    )
    helpers = [asyncio.create_task(simulator.run()), asyncio.create_task(receiver.run())]
    if browse:
        helpers.append(asyncio.create_task(_browse(service.settings)))  # type: ignore[attr-defined]  # a Service
    try:
        await service.run()  # type: ignore[attr-defined]  # a Service
    finally:
        for task in helpers:
            task.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)


async def _browse(settings: object) -> None:
    """Open the page where a person sits in front of a screen; nothing happens elsewhere."""
    import webbrowser

    await asyncio.sleep(4)
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        await asyncio.to_thread(webbrowser.open, f"http://{settings.host}:{settings.port}/")  # type: ignore[attr-defined]


def _write_config(folder: Path, simulator_port: int, receiver_port: int) -> Path:
    from app.simulator.demo import demo_config

    path = folder / "bandwatch.yaml"
    path.write_text(demo_config(simulator_port, receiver_port))
    return path


def _secret(folder: Path) -> str:
    """The demo's webhook secret, made once and kept with the demo's data."""
    path = folder / "webhook-secret"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}")
    return path.read_text()


def _free_ports(count: int) -> list[int]:
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [door.getsockname()[1] for door in doors]
    finally:
        for door in doors:
            door.close()
