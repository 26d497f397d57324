"""`/calculator`: what a deployment should reach, before anybody measures it."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.errors import BandwatchError
from app.expectation.expect import Workload, expect
from app.expectation.model import Expectation
from app.targets.model import Deployment
from app.web.site import Site

Text = Annotated[str, Query(max_length=300)]


def calculator_page(site: Site) -> APIRouter:
    """A form that answers by its own address, so that an answer can be sent to somebody."""
    router = APIRouter()

    @router.get("/calculator", response_class=HTMLResponse)
    async def page(
        *,
        request: Request,
        model_spec: Text = "",
        hardware: Text = "",
        devices: Annotated[int, Query(ge=1, le=100_000)] = 1,
        quantization: Text = "",
        batch: Annotated[int, Query(ge=1, le=100_000)] = 1,
        context_tokens: Annotated[int, Query(ge=0, le=10_000_000)] = 2048,
        prompt_tokens: Annotated[int, Query(ge=1, le=10_000_000)] = 512,
        speculation: Text = "",
    ) -> HTMLResponse:
        answer: Expectation | None = None
        problem = ""
        if model_spec.strip():
            deployment = Deployment(
                model_spec=model_spec.strip(),
                hardware=hardware.strip() or None,
                devices=devices if hardware.strip() else None,
                quantization=quantization.strip() or None,
                batch=batch,
                speculation=speculation.strip() or "unknown",
            )
            work = Workload(context_tokens=context_tokens, prompt_tokens=prompt_tokens)
            try:
                answer = await asyncio.to_thread(expect, deployment, catalog=site.catalog, workload=work)
            except BandwatchError as error:
                problem = str(error)
            except (ValueError, OverflowError, ZeroDivisionError):
                problem = "These figures lie beyond anything that can be computed."
        catalog = site.catalog
        return site.page(
            request,
            "calculator.html",
            status=422 if problem else 200,
            answer=answer,
            problem=problem,
            asked={
                "model_spec": model_spec,
                "hardware": hardware,
                "devices": devices,
                "quantization": quantization,
                "batch": batch,
                "context_tokens": context_tokens,
                "prompt_tokens": prompt_tokens,
                "speculation": speculation,
            },
            models=sorted(catalog.models),
            accelerators=sorted(catalog.accelerators.values(), key=lambda a: a.id),
            formats=sorted(q.id for q in catalog.quantizations.values() if q.covers != "cache"),
        )

    return router
