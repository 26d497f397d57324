"""From sections, which are valid, to the nouns that the rest of the program knows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from app.targets.model import (
    Budget,
    Channel,
    ChannelKind,
    Config,
    Connection,
    Deadlines,
    Deployment,
    FitFor,
    Maintenance,
    Match,
    Prompt,
    Provider,
    Recipe,
    Retention,
    Route,
    Slo,
    Target,
    Thresholds,
)
from app.targets.policy import ChannelIn, FitForIn, MaintenanceIn, MatchIn, RetentionIn, ThresholdsIn
from app.targets.recipes import BUILTIN
from app.targets.schema import FileIn
from app.targets.sections import BudgetIn, DeadlinesIn, ProviderIn, RecipeIn, TargetIn


def build_config(file: FileIn) -> Config:
    """The whole configuration. Its mappings cannot be changed."""
    providers = {name: build_provider(name, section) for name, section in file.providers.items()}
    recipes = {**BUILTIN, **{name: _recipe(name, section) for name, section in file.recipes.items()}}
    return Config(
        providers=MappingProxyType(providers),
        targets=tuple(
            build_target(section, providers=providers, recipes=recipes, deadlines=file.deadlines) for section in file.targets
        ),
        channels=MappingProxyType({name: build_channel(name, section) for name, section in file.channels.items()}),
        routes=tuple(Route(channels=tuple(route.channels), match=_match(route.match)) for route in file.routes),
        maintenance=tuple(map(_maintenance, file.maintenance)),
        retention=_retention(file.retention),
        thresholds=_thresholds(file.thresholds),
        fit_for=_fit_for(file.fit_for),
        recipes=MappingProxyType(recipes),
        allow_networks=tuple(file.allow_networks),
        min_locations=file.min_locations,
        catalog=file.catalog,
    )


def build_provider(name: str, section: ProviderIn, *, trusted: bool = True) -> Provider:
    """A provider; one that the API made is not `trusted`."""
    return Provider(
        name=name,
        base_url=section.base_url,
        api_key=section.api_key,
        max_concurrency=section.max_concurrency,
        budget=_budget(section.budget),
        dialect=section.dialect,
        headers=MappingProxyType(dict(section.headers)),
        trusted=trusted,
    )


def build_target(
    section: TargetIn,
    *,
    providers: Mapping[str, Provider],
    recipes: Mapping[str, Recipe],
    deadlines: DeadlinesIn | None = None,
    origin: Literal["file", "api"] = "file",
) -> Target:
    """A target whose provider and recipe are known to exist; `deadlines` are those that the file states for all."""
    return Target(
        name=section.name,
        provider=providers[section.provider],
        model=section.model,
        every_s=section.every,
        recipe=recipes[section.recipe],
        locations=tuple(section.locations),
        deployment=None if section.deployment is None else Deployment(**section.deployment.model_dump()),
        slo=None if section.slo is None else Slo(ttft_p95_s=section.slo.ttft_p95, tps_p50=section.slo.tps_p50),
        deadlines=fit_deadlines(section.deadlines, shared=deadlines or DeadlinesIn(), every_s=section.every),
        connection=Connection(section.connection),
        budget=_budget(section.budget),
        paused=section.paused,
        origin=origin,
    )


def build_channel(name: str, section: ChannelIn, *, origin: Literal["file", "api"] = "file") -> Channel:
    """A channel, its URLs as one tuple."""
    urls = tuple(section.urls) or ((section.url,) if section.url is not None else ())
    return Channel(name=name, kind=ChannelKind(section.kind), urls=urls, secrets=tuple(section.secret), origin=origin)


def fit_deadlines(own: DeadlinesIn, *, shared: DeadlinesIn, every_s: float) -> Deadlines:
    """The target's own deadlines, else the file's, else the defaults cut to end before the next tick.

    What is cut leaves a tenth of the interval free, at most a second.
    """
    room_s = every_s - min(1.0, every_s / 10)
    default = Deadlines()

    def pick(stated: float | None, shared_s: float | None, default_s: float, most_s: float) -> float:
        explicit = stated if stated is not None else shared_s
        return min(default_s, most_s) if explicit is None else explicit

    total_s = pick(own.total, shared.total, default.total_s, room_s)
    return Deadlines(
        connect_s=pick(own.connect, shared.connect, default.connect_s, total_s),
        first_token_s=pick(own.first_token, shared.first_token, default.first_token_s, total_s),
        stall_s=pick(own.stall, shared.stall, default.stall_s, total_s),
        total_s=total_s,
    )


def _budget(section: BudgetIn) -> Budget:
    return Budget(tokens_per_day=section.tokens_per_day, usd_per_day=section.usd_per_day)


def _recipe(name: str, section: RecipeIn) -> Recipe:
    return Recipe(
        name=name,
        prompt=Prompt(section.prompt),
        prompt_tokens=section.prompt_tokens,
        output_tokens=section.output_tokens,
        temperature=section.temperature,
        paired=section.paired,
    )


def _match(section: MatchIn) -> Match:
    return Match(**section.model_dump())


def _maintenance(section: MaintenanceIn) -> Maintenance:
    return Maintenance(
        match=_match(section.match),
        every=section.every,
        start=section.start,
        to=section.to,
        time_zone=section.time_zone,
        weekday=section.weekday,
    )


def _retention(section: RetentionIn) -> Retention:
    return Retention(
        runs_s=section.runs, rollup_5m_s=section.rollup_5m, rollup_1h_s=section.rollup_1h, rollup_1d_s=section.rollup_1d
    )


def _thresholds(section: ThresholdsIn) -> Thresholds:
    stated = section.model_dump()
    renamed = {f"{key}_s": stated.pop(key) for key in ("window", "remind", "flap", "group_wait")}
    return Thresholds(**stated, **renamed)


def _fit_for(section: FitForIn) -> FitFor:
    stated = section.model_dump()
    return FitFor(voice_ttft_p95_s=stated.pop("voice_ttft_p95"), **stated)
