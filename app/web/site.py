"""What pages are made of, and the pieces that every page shares."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.catalog.load import Catalog
from app.clock import Clock
from app.errors import NotFoundError
from app.storage.database import Database
from app.storage.queries.keys import Scope
from app.storage.queries.session import ReadSession, reading
from app.targets.model import Config, Target
from app.web.draw.meter import meter
from app.web.words import FILTERS

STATIC = Path(__file__).parent / "static"


@dataclass(kw_only=True)
class Site:
    """The rest of the program as pages see it."""

    database: Database
    clock: Clock
    config: Callable[[], Config]
    catalog: Catalog
    version: str
    _hashes: dict[str, str] = field(default_factory=dict)

    @cached_property
    def templates(self) -> Environment:
        """The templates, all read now: none is looked for while a request waits. Everything is escaped."""
        made = Environment(
            loader=PackageLoader("app.web"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.filters.update(FILTERS)
        made.globals.update(static=self.static, meter=meter, version=self.version)
        for name in made.list_templates():
            made.get_template(name)
        return made

    def static(self, name: str) -> str:
        """The URL of a file, which changes with the file, so that browsers may keep it for ever."""
        if name not in self._hashes:
            self._hashes[name] = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
        return f"/static/{name}?v={self._hashes[name]}"

    @asynccontextmanager
    async def look(self) -> AsyncIterator[ReadSession]:
        """One look at the database."""
        async with reading(self.database) as session:
            yield session

    def target(self, name: str) -> Target:
        """The target of that name.

        Raises:
            NotFoundError: there is none.
        """
        for target in self.config().targets:
            if target.name == name:
                return target
        raise NotFoundError(f"There is no target '{name[:200]}'")

    def page(self, request: Request, template: str, *, status: int = 200, **facts: Any) -> HTMLResponse:  # noqa: ANN401 - whatever the template shows
        """A page, or the part of it that refreshes itself."""
        scope = scope_of(request)
        shown = self.templates.get_template(template).render(
            path=request.url.path, now=self.clock.now(), may_write=scope is not None and scope.allows(Scope.WRITE), **facts
        )
        return HTMLResponse(shown, status_code=status, headers={"Vary": "HX-Request"})


def scope_of(request: Request) -> Scope | None:
    """What the caller may do, as the doorkeeper noted it."""
    caller = request.scope.get("state", {}).get("caller")
    found = getattr(caller, "scope", None)
    return found if isinstance(found, Scope) else None


def caller_name(request: Request) -> str:
    """Who the caller is, for the audit log."""
    return str(getattr(request.scope.get("state", {}).get("caller"), "name", "anonymous"))
