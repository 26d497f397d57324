"""The configuration as it is now: the file, what the API has made, and who is paused; replaced whole or not at all."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from app.catalog.load import Catalog, load_catalog
from app.errors import BandwatchError, ConfigError, Problem
from app.storage.targets import Made
from app.targets.load import load_channel, load_config, load_target
from app.targets.model import Config, Target

log = structlog.get_logger()

DEFAULT_FILE = Path("bandwatch.yaml")


def read_config(path: Path, *, catalog: Catalog) -> tuple[Config, str]:
    """The config of a file, and the hash of its text.

    Raises:
        ConfigError: with every problem; also when the file cannot be read.
    """
    text, seen = _read(path)
    return load_config(text, file=str(path), catalogue=catalog), seen


def catalog_of(path: Path | None) -> Catalog:
    """The catalogue, with the rows of one's own that a config file names (`catalog`, beside that file).

    Raises:
        ConfigError: the config or the rows cannot be used.
    """
    own = None if path is None else load_config(_read(path)[0], file=str(path)).catalog
    return load_catalog(None if path is None or own is None else path.parent / own)


def _read(path: Path) -> tuple[str, str]:
    """Text and hash of a file."""
    try:
        raw = path.read_bytes()
        return raw.decode("utf-8"), hashlib.sha256(raw).hexdigest()
    except OSError as error:
        raise ConfigError([Problem(file=str(path), message=f"cannot be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([Problem(file=str(path), message="is not UTF-8 text")]) from error


@dataclass(slots=True, kw_only=True)
class ConfigHolder:
    """Holds the current config. `refresh` looks for changes of the file and of the API's additions.

    A file that has become bad keeps the old config, and says so once per change; `loaded` tells metrics.
    """

    catalog: Catalog
    path: Path | None = None
    loaded: bool = True
    current: Config = field(default_factory=Config)
    _file: Config = field(default_factory=Config)
    _seen: str = ""

    def beside(self, name: str | None) -> Path | None:
        """What the file calls `name`, as a path from where the file is; None where there is no file or no name."""
        return None if name is None or self.path is None else self.path.parent / name

    def load(self) -> None:
        """Read the file for the first time.

        Raises:
            ConfigError: it cannot be used.
        """
        if self.path is not None:
            self._file, self._seen = read_config(self.path, catalog=self.catalog)
        self.current = self._file

    def reread(self) -> bool:
        """Look at the file again; True when a new config was taken over."""
        if self.path is None:
            return False
        try:
            seen = hashlib.sha256(self.path.read_bytes()).hexdigest()
        except OSError as error:
            self._complain("unreadable", str(error.strerror))
            return False
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            self._file, _ = read_config(self.path, catalog=self.catalog)
        except ConfigError as error:
            self.loaded = False
            log.error("config_rejected", file=str(self.path), problems=[str(p) for p in error.problems], kept="the old one")
            return False
        self.loaded = True
        log.info("config_loaded", file=str(self.path), targets=len(self._file.targets))
        return True

    async def refresh(self, made: Made | None) -> None:
        """Take over what has changed in the file and, if the database answers, in what the API has made."""
        changed = self.reread()
        if made is None:
            self.current = self._file if changed else self.current
            return
        targets, channels, paused = await made.all()
        silences = await made.silences()
        config = self._file
        own = {target.name for target in config.targets}
        added = [t for name, document in targets.items() if name not in own and (t := self._target(name, document, config))]
        everyone = [replace(t, paused=t.paused or t.name in paused) for t in (*config.targets, *added)]
        more = {}
        for name, document in channels.items():
            if name not in config.channels:
                try:
                    more[name] = load_channel(name, document)
                except BandwatchError as error:
                    log.error("channel_unusable", channel=name, error=str(error))
        self.current = replace(config, targets=tuple(everyone), channels={**more, **config.channels}, silences=silences)

    def _target(self, name: str, document: object, config: Config) -> Target | None:
        try:
            return load_target(document, config=config, catalogue=self.catalog)  # type: ignore[arg-type]  # JSON object
        except BandwatchError as error:
            log.error("target_unusable", target=name, error=str(error))
            return None

    def _complain(self, seen: str, reason: str) -> None:
        if self._seen != seen:
            log.error("config_rejected", file=str(self.path), problems=[reason], kept="the old one")
        self._seen, self.loaded = seen, False
