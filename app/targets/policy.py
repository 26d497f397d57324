"""The sections of the config file that say what is thought of it and who hears of it: thresholds, channels, routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from app.targets.fields import Address, Glob, Name, Positive, Reference, Seconds, TimeOfDay, TimeZone, Weekday, check_url
from app.targets.model import FitFor, Retention, SecretRef, Thresholds
from app.targets.sections import Section

_KEPT, _AT, _FIT = Retention(), Thresholds(), FitFor()
Kept = Annotated[Seconds, Field(ge=86400)]
Share = Annotated[float, Field(gt=0, le=1)]


def _as_list(value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
    return value if isinstance(value, list | tuple) else [value]


class ChannelIn(Section):
    """A way out, in the file and in the body of `POST /channels`."""

    kind: Literal["webhook", "alertmanager", "apprise"]
    url: Address | None = None
    urls: list[Address] = Field(default_factory=list)
    secret: Annotated[list[Reference], BeforeValidator(_as_list)] = Field(default_factory=list)

    @field_validator("url")
    @classmethod
    def _readable(cls, value: str | SecretRef | None, info: ValidationInfo) -> str | SecretRef | None:
        kind = info.data.get("kind")
        if isinstance(value, str):
            if kind == "apprise" and "://" not in value:
                raise ValueError("must be an Apprise URL such as ${env:APPRISE_URL}")
            if kind in {"webhook", "alertmanager"}:
                return check_url(value)
        return value

    @field_validator("urls")
    @classmethod
    def _all_readable(cls, value: list[str | SecretRef], info: ValidationInfo) -> list[str | SecretRef]:
        return [url for url in (cls._readable(url, info) for url in value) if url is not None]

    @field_validator("urls", mode="after")
    @classmethod
    def _one_way(cls, value: list[str | SecretRef], info: ValidationInfo) -> list[str | SecretRef]:
        if value and info.data.get("url") is not None:
            raise ValueError("give url or urls, not both")
        if len(value) > 1 and info.data.get("kind") == "webhook":
            raise ValueError("a webhook has one url; make a channel for each")
        return value

    @model_validator(mode="after")
    def _somewhere(self) -> ChannelIn:
        if self.url is None and not self.urls:
            raise ValueError("url is required")
        if self.secret and self.kind != "webhook":
            raise ValueError("secret is for webhooks, which are signed with it")
        return self


class MatchIn(Section):
    """Conditions that must all hold."""

    target: Glob | None = None
    provider: Name | None = None
    severity: Literal["warning", "critical"] | None = None
    rule: (
        Literal[
            "below_expectation",
            "slow_first_token",
            "regressed",
            "above_ceiling",
            "unavailable",
            "auth",
            "not_found",
            "bad_request",
            "quota",
            "budget",
            "monitor",
        ]
        | None
    ) = None
    location: Name | None = None


class RouteIn(Section):
    """Channels for what matches."""

    match: MatchIn = MatchIn()
    channels: Annotated[list[Name], Field(min_length=1)]


class MaintenanceIn(Section):
    """A recurring window in which nothing is announced."""

    match: MatchIn = MatchIn()
    every: Literal["daily", "weekly"]
    weekday: Weekday | None = Field(default=None, validate_default=True)
    start: TimeOfDay = Field(alias="from")
    to: TimeOfDay
    time_zone: TimeZone = "UTC"

    @field_validator("weekday")
    @classmethod
    def _belongs(cls, value: int | None, info: ValidationInfo) -> int | None:
        every = info.data.get("every")
        if every == "weekly" and value is None:
            raise ValueError("is required for a weekly window")
        if every == "daily" and value is not None:
            raise ValueError("makes no sense for a daily window")
        return value

    @field_validator("to")
    @classmethod
    def _some_time(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - passed through
        if value == info.data.get("start"):
            raise ValueError("must differ from 'from'")
        return value


class RetentionIn(Section):
    """How long things are kept."""

    runs: Kept = _KEPT.runs_s
    rollup_5m: Kept = _KEPT.rollup_5m_s
    rollup_1h: Kept = _KEPT.rollup_1h_s
    rollup_1d: Kept = _KEPT.rollup_1d_s


class ThresholdsIn(Section):
    """Where a figure becomes a verdict, and how much evidence that takes."""

    red_below: Share = _AT.red_below
    amber_below: Share = Field(default=_AT.amber_below, validate_default=True)
    tuned_above: Annotated[Positive, Field(ge=1)] = _AT.tuned_above
    min_samples: Annotated[int, Field(ge=1, le=1000)] = _AT.min_samples
    min_attempts: Annotated[int, Field(ge=1, le=1000)] = _AT.min_attempts
    window: Annotated[Seconds, Field(ge=1, le=86400)] = _AT.window_s
    windows: Annotated[int, Field(ge=1, le=100)] = _AT.windows
    open_on: Annotated[int, Field(ge=1)] = Field(default=_AT.open_on, validate_default=True)
    close_on: Annotated[int, Field(ge=0)] = Field(default=_AT.close_on, validate_default=True)
    regressed_below: Share = _AT.regressed_below
    unavailable_below: Share = _AT.unavailable_below
    slow_first_token_above: Annotated[Positive, Field(ge=1)] = _AT.slow_first_token_above
    remind: Seconds = _AT.remind_s
    flap: Seconds = _AT.flap_s
    group_wait: Annotated[Seconds, Field(ge=0, le=3600)] = _AT.group_wait_s
    group_over: Annotated[int, Field(ge=1, le=1000)] = _AT.group_over

    @field_validator("amber_below")
    @classmethod
    def _above_red(cls, value: float, info: ValidationInfo) -> float:
        if value < info.data.get("red_below", value):
            raise ValueError("must not be lower than red_below")
        return value

    @field_validator("open_on")
    @classmethod
    def _reachable(cls, value: int, info: ValidationInfo) -> int:
        if value > info.data.get("windows", value):
            raise ValueError("must not be more than windows")
        return value

    @field_validator("close_on")
    @classmethod
    def _hysteresis(cls, value: int, info: ValidationInfo) -> int:
        if value >= info.data.get("open_on", value + 1):
            raise ValueError("must be less than open_on")
        return value


class FitForIn(Section):
    """What a target is good enough for."""

    voice_ttft_p95: Seconds = _FIT.voice_ttft_p95_s
    chat_tps: Positive = _FIT.chat_tps
    coding_tps: Positive = _FIT.coding_tps
    long_generation_tps: Positive = _FIT.long_generation_tps
