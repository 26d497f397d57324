"""The nouns of configuration, as the rest of the program sees them: immutable, validated, secrets still references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time
from enum import StrEnum
from typing import Literal

from app.targets.deployment import Deployment as Deployment  # noqa: PLC0414 - a noun of this module, kept apart for quick imports


class SecretSource(StrEnum):
    """Where a secret is kept."""

    ENV = "env"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """`${env:NAME}` or `${file:/path}`: names a secret without holding it. `app.secrets` resolves it when it is used."""

    source: SecretSource
    name: str

    def __str__(self) -> str:
        return f"${{{self.source}:{self.name}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that may be spent in one UTC day; None is no limit."""

    tokens_per_day: int | None = None
    usd_per_day: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """The four deadlines of a probe, in seconds (docs: measurement)."""

    connect_s: float = 10.0
    first_token_s: float = 60.0
    stall_s: float = 30.0
    total_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An endpoint and what may be spent on it. `dialect` None: told from the base URL's host. `trusted` False: made by
    the API, so that the address guard applies.
    """

    name: str
    base_url: str
    api_key: SecretRef | None = None
    max_concurrency: int = 2
    budget: Budget = Budget()
    dialect: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """A promise to hold a target to: TTFT p95 in seconds, median TPS."""

    ttft_p95_s: float | None = None
    tps_p50: float | None = None


class Connection(StrEnum):
    """Fresh for each probe, or kept from the one before; never mixed in one statistic."""

    COLD = "cold"
    WARM = "warm"


class Prompt(StrEnum):
    """What a recipe's prompt is made of, after its nonce."""

    CHAT = "chat"
    PROSE = "prose"
    CODE = "code"
    FILLER = "filler"
    PREFIX = "prefix"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Prompt, output length and parameters, fixed so that runs are comparable."""

    name: str
    prompt: Prompt = Prompt.CHAT
    prompt_tokens: int = 60
    output_tokens: int = 128
    temperature: float = 0.0
    paired: bool = False
    prefix: int | None = None
    """Seed of the long part of the prompt: calls that share it share that part, and may meet in the provider's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One thing that is watched: a model at a provider, probed with one recipe on one interval."""

    name: str
    provider: Provider
    model: str
    every_s: float
    recipe: Recipe
    locations: tuple[str, ...] = ("default",)
    deployment: Deployment | None = None
    slo: Slo | None = None
    deadlines: Deadlines = Deadlines()
    connection: Connection = Connection.COLD
    budget: Budget = Budget()
    paused: bool = False
    origin: Literal["file", "api"] = "file"


class ChannelKind(StrEnum):
    """The ways out."""

    WEBHOOK = "webhook"
    ALERTMANAGER = "alertmanager"
    APPRISE = "apprise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Where alerts go. `urls` hold plain URLs or secret references; `secrets` sign webhooks (several while rotating)."""

    name: str
    kind: ChannelKind
    urls: tuple[str | SecretRef, ...]
    secrets: tuple[SecretRef, ...] = ()
    origin: Literal["file", "api"] = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Conditions that must all hold; None matches anything. `target` may be a glob (`groq/*`)."""

    target: str | None = None
    provider: str | None = None
    severity: str | None = None
    rule: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Channels for what matches; a change goes to the channels of the first route that matches it."""

    channels: tuple[str, ...]
    match: Match = Match()


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """A recurring window of local time in an IANA zone; `weekday` 0 is Monday; `to` before `start` ends the next day."""

    match: Match
    every: Literal["daily", "weekly"]
    start: time
    to: time
    time_zone: str = "UTC"
    weekday: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """For this span, nothing that matches is announced. Made by the API; the config file has none."""

    match: Match
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Where a ratio of observed to expected becomes a verdict, and how much evidence that takes (docs: calibration)."""

    red_below: float = 0.4
    amber_below: float = 0.6
    tuned_above: float = 1.25
    min_samples: int = 5
    window_s: float = 900.0
    windows: int = 3
    open_on: int = 2
    close_on: int = 0
    regressed_below: float = 0.7
    unavailable_below: float = 0.5
    min_attempts: int = 3
    """Calls that tell of availability before it is judged."""
    slow_first_token_above: float = 3.0
    """TTFT over this many times the longest expected one (and by more than a second) is slow."""
    remind_s: float = 4 * 3600.0
    flap_s: float = 6 * 3600.0
    """A rule that closed within this span takes more healthy windows to close again."""
    group_wait_s: float = 30.0
    """How long an announcement waits for others of its provider."""
    group_over: int = 4
    """More announcements of one provider than this, waiting together, become one."""

    def window_for(self, every_s: float) -> float:
        """Seconds of one window for a target probed every `every_s`: long enough to hold `min_samples` and two to spare."""
        return max(self.window_s, every_s * (self.min_samples + 2))

    def past_for(self, every_s: float) -> float:
        """Seconds that the samples of a decision reach back."""
        return self.windows * self.window_for(every_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFor:
    """What a target is good enough for, by threshold."""

    voice_ttft_p95_s: float = 0.150
    chat_tps: float = 30.0
    coding_tps: float = 100.0
    long_generation_tps: float = 500.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long things are kept, in seconds."""

    runs_s: float = 30 * 86400.0
    rollup_5m_s: float = 90 * 86400.0
    rollup_1h_s: float = 2 * 365 * 86400.0
    rollup_1d_s: float = 10 * 365 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A whole, valid configuration."""

    providers: Mapping[str, Provider] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    channels: Mapping[str, Channel] = field(default_factory=dict)
    routes: tuple[Route, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()
    silences: tuple[Silence, ...] = ()
    retention: Retention = Retention()
    thresholds: Thresholds = Thresholds()
    fit_for: FitFor = FitFor()
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    allow_networks: tuple[str, ...] = ()
    min_locations: int = 1
    catalog: str | None = None
