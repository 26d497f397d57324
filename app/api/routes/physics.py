"""The calculator and the catalogue behind it: arithmetic on facts, no database."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AliasChoices, Field

from app.api.params import Cursor, Known, Limit, Listed
from app.api.problems import responses
from app.catalog.load import fold
from app.catalog.model import Accelerator, Model, Quantization
from app.errors import ConfigError, NotFoundError, Problem, UsageError
from app.expectation.expect import Workload, expect
from app.expectation.model import Expectation
from app.storage.queries.cursors import decode_cursor, encode_cursor
from app.targets.model import Deployment
from app.targets.sections import DeploymentIn

router = APIRouter(tags=["physics"], responses=responses(404))
_DEPLOYMENT = frozenset(field.name for field in fields(Deployment))


class ExpectationIn(DeploymentIn):
    """A deployment, with the keys of the config file, and what one stream does on it."""

    model_spec: Annotated[str, Field(min_length=1, max_length=300)]
    context_tokens: Annotated[int, Field(ge=0, le=10_000_000, validation_alias=AliasChoices("context_tokens", "context"))] = (
        2048
    )
    prompt_tokens: Annotated[int, Field(ge=1, le=10_000_000)] = 512
    network_s: Annotated[
        float | None, Field(ge=0, le=3600, description="what the network adds to a first token, as measured")
    ] = None
    observed_tps: Annotated[
        float | None, Field(gt=0, le=1e9, description="a speed that was seen: adds `feasible`, the deployments that explain it")
    ] = None

    def deployment(self) -> Deployment:
        """The deployment; one device where the hardware is known and their number is not said, as on the command line."""
        stated = {name: value for name, value in self.model_dump().items() if name in _DEPLOYMENT}
        devices = self.devices if self.devices is not None or self.hardware is None else 1
        return Deployment(**{**stated, "devices": devices})


class Kind(StrEnum):
    """A part of the catalogue."""

    HARDWARE = "hardware"
    MODELS = "models"
    QUANTIZATIONS = "quantizations"


class CatalogOut(Listed):
    """Rows of the catalogue, each with its source."""

    items: list[Accelerator] | list[Model] | list[Quantization]


@router.post("/expectation", summary="What a deployment should reach")
async def expectation(catalogue: Known, body: ExpectationIn) -> Expectation:
    """The calculator: bytes per token, memory, ceiling, expected speed, prefill. What is left out becomes a range or native."""
    work = Workload(context_tokens=body.context_tokens, prompt_tokens=body.prompt_tokens, network_s=body.network_s)
    try:
        return await asyncio.to_thread(
            expect, body.deployment(), catalog=catalogue, workload=work, observed_tps=body.observed_tps
        )
    except NotFoundError as error:
        raise ConfigError([Problem(field=_field_of(error), message=str(error))]) from None
    except (OverflowError, ZeroDivisionError):
        raise UsageError("the figures given lie beyond anything that can be computed") from None


def _field_of(error: NotFoundError) -> str:
    """Which field names what nobody knows."""
    for word, field in (("no hardware", "hardware"), ("no quantization", "quantization")):
        if str(error).startswith(word):
            return field
    return "model_spec"


@router.get("/catalog/{kind}", summary="The catalogue")
async def catalog(
    catalogue: Known,
    kind: Kind,
    query: Annotated[str, Query(max_length=200, description="only rows whose id, name or aliases hold this")] = "",
    limit: Limit = 500,
    cursor: Cursor = None,
) -> CatalogOut:
    """Hardware (bytes/s, bytes, FLOP/s), models or weight formats, by id."""
    rows: list[Any] = list(
        {Kind.HARDWARE: catalogue.accelerators, Kind.MODELS: catalogue.models, Kind.QUANTIZATIONS: catalogue.quantizations}[
            kind
        ].values()
    )
    wanted = fold(query)
    found = sorted((row for row in rows if any(wanted in fold(name) for name in _names(row))), key=lambda row: row.id)
    if cursor is not None:
        (after,) = decode_cursor(cursor, str)
        found = [row for row in found if row.id > after]
    return CatalogOut(items=found[:limit], next_cursor=encode_cursor(found[limit - 1].id) if len(found) > limit else None)


def _names(row: Any) -> tuple[str, ...]:  # noqa: ANN401 - one of three
    return (row.id, *getattr(row, "aliases", ()), getattr(row, "name", ""))
