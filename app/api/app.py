"""The application: every route of the contract behind one shell, one limiter and one doorkeeper."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse, Response

from app.api import reference
from app.api.door import Doorkeeper
from app.api.feed import Feed
from app.api.limiter import Buckets, RateLimit
from app.api.problems import ErrorPage, ProblemDetails, install_handlers
from app.api.routes import audit, badges, channels, diagnose, events, health, incidents, manage, physics, runs, series, targets
from app.api.routes.health import Checks
from app.api.services import Services
from app.api.shell import Shell
from app.catalog.load import load_catalog

API = "/api/v1"
_ROUTERS = (audit, physics, runs, series, incidents, channels, events, badges, diagnose, manage, targets)
"""`targets` last: its `/targets/{name}` takes every path that no other takes, for names may hold `/`."""


def create_app(services: Services, *, error_page: ErrorPage | None = None) -> FastAPI:
    """The API. Pages may be added to it: they stand behind the same shell and doorkeeper.

    Args:
        services: the rest of the program.
        error_page: makes a page of a problem for a browser, outside of the API's paths.
    """
    app = FastAPI(
        title="Bandwatch",
        version=services.build.version,
        description="Measures how fast LLM providers really are, and whether they are as fast as their hardware allows.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=_operation_id,
    )
    app.state.services = services
    app.state.catalog = services.catalog if services.catalog is not None else load_catalog()
    app.state.checks = Checks()
    app.state.feed = Feed(services.database, services.clock)
    install_handlers(app, page=error_page)
    app.include_router(health.router)
    for module in _ROUTERS:
        app.include_router(module.router, prefix=API)
    _describe(app)
    limits = services.limits
    app.add_middleware(Doorkeeper, services=services)
    app.add_middleware(RateLimit, buckets=Buckets(per_s=limits.requests_per_s, burst=limits.burst), clock=services.clock)
    app.add_middleware(Shell, body_bytes=limits.body_bytes)
    return app


def _operation_id(route: APIRoute) -> str:
    return f"{route.tags[0] if route.tags else 'page'}_{route.name}"


def _describe(app: FastAPI) -> None:
    """OpenAPI, and a page that shows it without asking anybody for anything."""

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes, openapi_version="3.1.0"
            )
            components = made.setdefault("components", {})
            problem = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
            components.setdefault("schemas", {}).update(problem.pop("$defs", {}))
            components["schemas"]["ProblemDetails"] = problem
            components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "bw_…"}}
            made["security"] = [{"key": []}, {}]
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        return schema()

    @app.get("/docs", include_in_schema=False, response_class=HTMLResponse)
    async def docs() -> str:
        return reference.page(schema())

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(reference.STYLE, media_type="text/css")
