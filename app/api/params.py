"""What requests hold, read strictly: instants, spans, names, places in lists."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema

from app.api.door import ANONYMOUS, Caller
from app.api.services import Services
from app.catalog.load import Catalog
from app.errors import NotFoundError
from app.storage.queries.session import ReadSession, WriteSession, reading, writing
from app.targets.model import Config, Target
from app.units import parse_duration

FIRST, LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
LONGEST_S = 20 * 366 * 86400.0
T = TypeVar("T")


class Listed(BaseModel):
    """Base of lists: a page of items, and where the next begins."""

    next_cursor: str | None = Field(default=None, description="pass it as `cursor` for the next page; null: that was all")


def _instant(value: datetime) -> datetime:
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if not FIRST.replace(tzinfo=None) <= aware.replace(tzinfo=None) <= LAST.replace(tzinfo=None):
        raise ValueError("must lie between 1970 and 2200")
    return aware.astimezone(UTC)


def _span(value: Any) -> Any:  # noqa: ANN401 - whatever the query holds
    if not isinstance(value, str):
        return value
    seconds = float(value) if re.fullmatch(r"\d{1,9}(\.\d{1,6})?", value) else parse_duration(value[:40])
    if not 0 < seconds <= LONGEST_S:
        raise ValueError("must be longer than nothing and at most 20 years")
    return seconds


Instant = Annotated[datetime, AfterValidator(_instant)]
Duration = Annotated[
    float,
    BeforeValidator(_span),
    WithJsonSchema({"type": "string", "pattern": r"^([1-9]\d{0,5}(s|m|h)|[1-9]\d{0,2}d)$", "examples": ["5m", "24h", "30d"]}),
]
"""A span in seconds, written like 500ms, 60s, 5m, 2h or 30d; a bare number is seconds."""
Limit = Annotated[int, Query(ge=1, le=500, description="items a page")]
Cursor = Annotated[str | None, Query(max_length=600, description="`next_cursor` of the page before")]
From = Annotated[Instant | None, Query(alias="from", description="from this instant on")]
To = Annotated[Instant | None, Query(description="before this instant")]
Name = Annotated[str, Path(min_length=1, max_length=200, description="a name; a target's may hold `/`")]


def services(request: Request) -> Services:
    """What the application was made of."""
    found: Services = request.app.state.services
    return found


Served = Annotated[Services, Depends(services)]


async def _reading(served: Served) -> AsyncIterator[ReadSession]:
    async with reading(served.database) as session:
        yield session


async def _writing(served: Served) -> AsyncIterator[WriteSession]:
    async with writing(served.database) as session:
        yield session


Reading = Annotated[ReadSession, Depends(_reading, scope="function")]
"""One look at the database, given back before the answer is sent."""
Writing = Annotated[WriteSession, Depends(_writing, scope="function")]
"""One transaction, committed before the answer is sent: a 200 means that it is stored."""


def caller(request: Request) -> Caller:
    """Who asks."""
    found = request.scope.get("state", {}).get("caller", ANONYMOUS)
    return found if isinstance(found, Caller) else ANONYMOUS


Asking = Annotated[Caller, Depends(caller)]


def catalogue(request: Request) -> Catalog:
    """The catalogue that the application knows."""
    found: Catalog = request.app.state.catalog
    return found


Known = Annotated[Catalog, Depends(catalogue)]


def find_target(config: Config, name: str) -> Target:
    """The target of that name.

    Raises:
        NotFoundError: nobody knows it; with near matches.
    """
    for target in config.targets:
        if target.name == name:
            return target
    near = get_close_matches(name, [target.name for target in config.targets], n=3, cutoff=0.6)
    raise NotFoundError(f"no target '{name[:200]}'", near=near)


def span_of(since: datetime | None, until: datetime | None, *, now: datetime, default: timedelta) -> tuple[datetime, datetime]:
    """From and to, with what was left out filled in: until now, and from `default` before that."""
    end = until or now
    return since or end - default, end
