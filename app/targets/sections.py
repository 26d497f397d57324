"""The sections of the config file that say what is watched, as pydantic reads them. `build` makes the nouns of `model`.

Checks that look at one section are here and in `policy`; what refers to another section is in `references`. Field
validators look at their siblings through `info.data`, so that one wrong field does not hide another.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.targets.fields import BaseUrl, Count, Headers, Name, Positive, Reference, Seconds, Speculation, TargetName, Text
from app.targets.recipes import DEFAULT_RECIPE


class Section(BaseModel):
    """A mapping of the file: unknown keys are errors, and a key with nothing behind it is as if it were not there."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if not isinstance(data, dict):
            return data
        known = {info.alias or name for name, info in cls.model_fields.items()}
        return {key: value for key, value in data.items() if value is not None or key not in known}


class BudgetIn(Section):
    """The most to spend in a UTC day."""

    tokens_per_day: Annotated[int, Field(ge=0)] | None = None
    usd_per_day: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class DeadlinesIn(Section):
    """Deadlines; what is not stated is fitted to the interval."""

    connect: Seconds | None = None
    first_token: Seconds | None = None
    stall: Seconds | None = None
    total: Seconds | None = None


class ProviderIn(Section):
    """An endpoint."""

    base_url: BaseUrl
    api_key: Reference | None = None
    max_concurrency: Annotated[int, Field(ge=1, le=1000)] = 2
    budget: BudgetIn = BudgetIn()
    dialect: Name | None = None
    headers: Headers = Field(default_factory=dict)


class DeploymentIn(Section):
    """What is known of the machine behind a target."""

    model_spec: Text | None = None
    hardware: Text | None = None
    devices: Count | None = None
    quantization: Text | None = None
    bits: Annotated[Positive, Field(le=32)] | None = None
    kv_bits: Annotated[Positive, Field(le=32)] | None = None
    parallelism: Literal["tp", "pp"] = "tp"
    stack: Text | None = None
    batch: Count = 1
    speculation: Speculation = "unknown"


class SloIn(Section):
    """A promise."""

    ttft_p95: Seconds | None = None
    tps_p50: Positive | None = None


class RecipeIn(Section):
    """A recipe of one's own."""

    prompt: Literal["chat", "prose", "code", "filler", "prefix"] = "chat"
    prompt_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 60
    output_tokens: Annotated[int, Field(ge=1, le=100_000)] = 128
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    paired: bool = False


class TargetIn(Section):
    """One thing to watch, in the file and in the body of `POST /targets`."""

    name: TargetName
    provider: Name
    model: Text
    every: Annotated[Seconds, Field(ge=1, le=7 * 86400)] = 60.0
    recipe: Name = DEFAULT_RECIPE
    locations: Annotated[list[Name], Field(min_length=1, max_length=100)] = Field(default_factory=lambda: ["default"])
    deployment: DeploymentIn | None = None
    slo: SloIn | None = None
    deadlines: DeadlinesIn = DeadlinesIn()
    connection: Literal["cold", "warm"] = "cold"
    budget: BudgetIn = BudgetIn()
    paused: bool = False
