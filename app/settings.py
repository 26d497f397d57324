"""Settings of the process: `BANDWATCH_*` variables, or the same names in `.env` (docs: settings)."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import BeforeValidator, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import ConfigError, Problem
from app.units import parse_duration

PREFIX = "BANDWATCH_"
ENV_FILE = ".env"


def default_data_dir() -> Path:
    """Where data is kept unless told otherwise.

    `/var/lib/bandwatch` for root: the embedded Postgres runs as an unprivileged user then, who cannot enter root's home.
    Else `$XDG_DATA_HOME/bandwatch`, which is `~/.local/share/bandwatch` where that is not set.
    """
    if os.geteuid() == 0:
        return Path("/var/lib/bandwatch")
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "share") / "bandwatch"


def _seconds(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


class Settings(BaseSettings):
    """One field a variable; empty variables count as not set."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=ENV_FILE,
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    config: Path | None = None
    """The config file; without one, `bandwatch.yaml` in the working directory if it is there."""
    data: Path = Field(default_factory=default_data_dir)
    """Directory of everything kept on disk: the embedded Postgres, the spool."""
    database_url: SecretStr | None = None
    """A Postgres server, 15 or newer, instead of the embedded one."""
    postgres_bin: Path | None = None
    """Directory with `initdb`, `pg_ctl` and `postgres` for the embedded Postgres."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """Port to listen on; 0 takes a free one."""
    public_url: str | None = None
    """Where people reach this service; links in alerts begin with it."""
    location: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")] = "default"
    """The location whose probes this worker runs."""
    instance: Annotated[str, Field(min_length=1, max_length=100)] = Field(default_factory=socket.gethostname)
    """Name of this process among replicas."""
    neutral_addresses: str = "1.1.1.1:443,8.8.8.8:443,9.9.9.9:443"
    """Neutral addresses that tell whether this host's own network is down; `off` for none."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe log events to write."""
    log_format: Literal["auto", "console", "json"] = "auto"
    """`auto` is `console` on a terminal and `json` elsewhere."""
    grace: Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=3600)] = 30.0
    """How long running probes may finish after SIGTERM."""

    @field_validator("log_level", "log_format", mode="before")
    @classmethod
    def _in_lower_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("neutral_addresses")
    @classmethod
    def _are_addresses(cls, value: str) -> str:
        addresses_of(value)
        return value

    @property
    def neutral(self) -> tuple[tuple[str, int], ...]:
        """(literal address, port) of each; none when it is off."""
        return addresses_of(self.neutral_addresses)

    @field_validator("database_url")
    @classmethod
    def _is_postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(
            ("postgres://", "postgresql://", "postgresql+asyncpg://")
        ):
            raise ValueError("must start with postgresql://")
        if value is not None:
            try:
                _ = urlsplit(value.get_secret_value()).port
            except ValueError:
                raise ValueError("is no URL that can be read; write postgresql://user:password@host:5432/name") from None
        return value

    @field_validator("public_url")
    @classmethod
    def _without_slash(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        return None if value is None else value.rstrip("/")


def load_settings(*, env_file: Path | None = Path(ENV_FILE)) -> Settings:
    """The settings as the environment and `env_file` have them now; a variable wins over the file.

    Raises:
        ConfigError: naming every variable that is wrong, and never what it holds.
    """
    try:
        return Settings(_env_file=env_file)
    except ValidationError as error:
        raise ConfigError(
            [
                Problem(field=variable(str(detail["loc"][0])), message=detail["msg"].removeprefix("Value error, "))
                for detail in error.errors(include_url=False, include_context=False, include_input=False)
            ]
        ) from None


def addresses_of(text: str) -> tuple[tuple[str, int], ...]:
    """`1.1.1.1:443,[2606:4700::1111]:443` as addresses; `off` is none.

    Raises:
        ValueError: a part is no literal address with a port.
    """
    return () if text.strip().lower() == "off" else tuple(map(_address, text.split(",")))


def _address(part: str) -> tuple[str, int]:
    host, _, port = part.strip().rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("must be addresses with ports, such as 1.1.1.1:443,8.8.8.8:443, or off")
    return str(ip_address(host.removeprefix("[").removesuffix("]"))), int(port)


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def environment(*, env_file: Path | None = Path(ENV_FILE)) -> Mapping[str, str]:
    """What `${env:NAME}` is resolved from: the process's variables, and those of `env_file` behind them."""
    if env_file is None or not env_file.is_file():
        return dict(os.environ)
    stated = {name: value for name, value in dotenv_values(env_file).items() if value is not None}
    return {**stated, **os.environ}


def misspelt(environ: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each `BANDWATCH_*` variable that is nearly the name of a setting."""
    known = [variable(name) for name in Settings.model_fields]
    strange = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    near = {name: get_close_matches(name, known, n=1, cutoff=0.85) for name in strange}
    return tuple(f"{name} is no setting; did you mean {match[0]}?" for name, match in near.items() if match)
