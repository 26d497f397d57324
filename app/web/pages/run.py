"""`/runs/{id}`: one run, from its first packet to its last token."""

from __future__ import annotations

from dataclasses import fields

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.measurement.model import Measurement
from app.storage.queries.runs import get_run
from app.web.draw.timeline import phases, stretches, timeline
from app.web.site import Site

_SHOWN = (
    "http_status",
    "finish_reason",
    "presend_s",
    "ttft_s",
    "ttft_visible_s",
    "decode_tps",
    "tpot_s",
    "e2e_s",
    "e2e_tps",
    "total_s",
    "output_tokens",
    "reasoning_tokens",
    "prompt_tokens",
    "cached_tokens",
    "token_source",
    "output_reads",
    "tokens_per_read",
    "served_model",
    "served_by",
    "stamp_source",
    "loop_lag_s",
)


def run_pages(site: Site) -> APIRouter:
    """The page of a run."""
    router = APIRouter()

    @router.get("/runs/{run_id}", response_class=HTMLResponse)
    async def page(request: Request, run_id: str) -> HTMLResponse:
        async with site.look() as session:
            found = await get_run(session, run_id[:200])
        m = found.measurement
        parts = stretches(m)
        return site.page(
            request,
            "run.html",
            run=found.run,
            m=m,
            stages=parts,
            stages_chart=phases(parts),
            timeline=timeline(m, stamps_s=found.read_stamps_s, tokens=found.read_tokens),
            facts=facts(m),
        )

    return router


def facts(m: Measurement) -> list[tuple[str, str, float | int | str]]:
    """(name, kind, value) of the figures that exist; kind says how a value is written."""
    kinds = {"_s": "span", "tps": "speed"}
    known = {field.name for field in fields(m)}
    found = []
    for name in _SHOWN:
        value = getattr(m, name) if name in known else None
        if value is not None:
            kind = next((kind for ending, kind in kinds.items() if name.endswith(ending)), "plain")
            words = name.removesuffix("_s").replace("_", " ") if kind == "span" else name.replace("_", " ")
            found.append((words, kind, value))
    return found
