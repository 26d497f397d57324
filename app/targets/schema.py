"""The shape of the whole config file."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.targets.fields import Name, Network, Text
from app.targets.policy import ChannelIn, FitForIn, MaintenanceIn, RetentionIn, RouteIn, ThresholdsIn
from app.targets.sections import DeadlinesIn, ProviderIn, RecipeIn, Section, TargetIn


class FileIn(Section):
    """The whole file."""

    providers: dict[Name, ProviderIn] = Field(default_factory=dict)
    targets: list[TargetIn] = Field(default_factory=list)
    channels: dict[Name, ChannelIn] = Field(default_factory=dict)
    routes: list[RouteIn] = Field(default_factory=list)
    maintenance: list[MaintenanceIn] = Field(default_factory=list)
    retention: RetentionIn = RetentionIn()
    thresholds: ThresholdsIn = ThresholdsIn()
    fit_for: FitForIn = FitForIn()
    recipes: dict[Name, RecipeIn] = Field(default_factory=dict)
    deadlines: DeadlinesIn = DeadlinesIn()
    allow_networks: list[Network] = Field(default_factory=list)
    min_locations: Annotated[int, Field(ge=1, le=100)] = 1
    catalog: Text | None = None
