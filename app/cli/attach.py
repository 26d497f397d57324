"""How commands come to a database: settings, logs that leave standard output alone, one event loop, one unit of work."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from app.secrets import Redactor
    from app.settings import Settings
    from app.storage.database import Database

T = TypeVar("T")


def command_settings(data: Path | None) -> Settings:
    """The settings of the process, with the data folder of the command line."""
    from app.settings import load_settings

    stated = {} if data is None else {"data": data}
    return load_settings().model_copy(update=stated)


def on_database(settings: Settings, work: Callable[[Database], Awaitable[T]], *, migrate: bool | None = False) -> T:
    """Run `work` on the database of these settings.

    Args:
        settings: say which database.
        work: what to do; its result is returned.
        migrate: bring the schema up to date before; False: demand that it is; None: take it as it is.

    Raises:
        BandwatchError: the database is away, or its schema is another one.
    """
    from app.bootstrap.attach import attached, need_schema
    from app.bootstrap.logs import set_up_logs

    set_up_logs(redactor_of(settings), level="warning", style=settings.log_format)

    async def main() -> T:
        async with attached(settings) as database:
            if migrate is not None:
                await need_schema(database, migrate=migrate)
            return await work(database)

    return asyncio.run(main())


def redactor_of(settings: Settings) -> Redactor:
    """Knows the secrets of the environment, of `.env` and of the database's URL."""
    from app.secrets import Redactor
    from app.settings import environment

    redactor = Redactor()
    for name, value in {**environment(), **os.environ}.items():
        redactor.learn_named(name, value)
    if settings.database_url is not None:
        redactor.learn_url(settings.database_url.get_secret_value())
    return redactor
