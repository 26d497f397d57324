"""The parts that every role shares, built once."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from app.bootstrap.config import ConfigHolder
from app.catalog.load import Catalog, load_catalog
from app.clock import Clock, SystemClock
from app.errors import BandwatchError, UnavailableError
from app.secrets import Redactor, Secrets
from app.settings import Settings, environment
from app.storage.database import Database
from app.storage.migrate import upgrade
from app.storage.targets import Made
from app.storage.upkeep import upkeep

log = structlog.get_logger()

RETRY_S = 1.0


def new_id() -> str:
    """A fresh id; random, so that nobody can guess one."""
    return uuid.uuid4().hex


@dataclass(slots=True, kw_only=True)
class Core:
    """Settings, configuration, database, secrets. `ready` is set once the schema is there."""

    settings: Settings
    database: Database
    holder: ConfigHolder
    redactor: Redactor
    secrets: Secrets
    catalog: Catalog
    clock: Clock = field(default_factory=SystemClock)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    started_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.started_at = self.clock.now()

    @property
    def base_url(self) -> str:
        """Where people reach the service."""
        return self.settings.public_url or f"http://{self.settings.host}:{self.settings.port}"

    async def prepare(self) -> None:
        """Bring the schema and the partitions up to date, trying again until the database answers or `stop` is set."""
        said = ""
        while not self.stop.is_set():
            try:
                revision = await upgrade(self.database)
                await upkeep(self.database, retention=self.holder.current.retention, now=self.clock.now())
            except UnavailableError as error:
                if str(error) != said:
                    said = str(error)
                    log.error("database_unavailable", error=said, retry_s=RETRY_S)
                await asyncio.sleep(RETRY_S)
            else:
                log.info("database_ready", revision=revision)
                self.ready.set()
                return

    async def prepare_and_wait(self) -> None:
        """`prepare`, then stay until told to stop: a supervised loop that returns would be begun again."""
        await self.prepare()
        await self.stop.wait()

    async def follow_config(self) -> None:
        """One look at the file and at what the API has made."""
        try:
            await self.holder.refresh(Made(database=self.database) if self.ready.is_set() else None)
        except BandwatchError as error:
            log.warning("config_not_refreshed", error=str(error))


def build_core(
    settings: Settings, *, dsn: str, holder: ConfigHolder, redactor: Redactor, catalog: Catalog | None = None
) -> Core:
    """Put the shared parts together."""
    redactor.learn_url(dsn)
    return Core(
        settings=settings,
        database=Database(dsn=dsn),
        holder=holder,
        redactor=redactor,
        secrets=Secrets(redactor, environ=environment()),
        catalog=catalog if catalog is not None else load_catalog(),
    )
