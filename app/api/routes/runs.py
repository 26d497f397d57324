"""One run with everything that is kept of it, and all runs as a stream."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator
from dataclasses import fields
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Path, Query
from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from app.api.params import From, Reading, Served, To, find_target
from app.api.problems import responses
from app.api.services import Services
from app.errors import NotFoundError
from app.measurement.model import Measurement
from app.storage.queries.runs import RunFilter, RunRow, get_run, recording_of, stream_runs
from app.storage.queries.session import reading

router = APIRouter(tags=["runs"], responses=responses())
CHUNK = 32_768
RECORDING = "application/gzip"
_NAMES = tuple(field.name for field in fields(RunRow))
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class RunOut(BaseModel):
    """One run. `read_stamps_s` (seconds since the request was sent) and `read_tokens` have one entry an output read."""

    run: RunRow
    measurement: Measurement
    read_stamps_s: list[float]
    read_tokens: list[float]


@router.get("/runs/{run_id}", summary="One run", responses=responses(404))
async def run(session: Reading, run_id: Annotated[str, Path(max_length=200)]) -> RunOut:
    """A run with its phases, its figures and whether they can be relied on, and the token timeline."""
    found = await get_run(session, run_id)
    return RunOut(
        run=found.run,
        measurement=found.measurement,
        read_stamps_s=list(found.read_stamps_s),
        read_tokens=list(found.read_tokens),
    )


@router.get(
    "/runs/{run_id}/recording",
    summary="The kept recording of a run",
    response_class=Response,
    responses={200: {"content": {RECORDING: {}}}, **responses(404)},
)
async def recording(session: Reading, run_id: Annotated[str, Path(max_length=200)]) -> Response:
    """The recording as a file for `bandwatch replay`; kept of failed runs, of flagged targets, and of the first of a kind."""
    content = await recording_of(session, run_id)
    if content is None:
        raise NotFoundError(f"no recording of run '{run_id[:80]}' is kept")
    name = re.sub(r"[^\w.-]", "_", run_id)
    headers = {"Content-Disposition": f'attachment; filename="{name}.recording.gz"'}
    return Response(content, media_type=RECORDING, headers=headers)


@router.get(
    "/export/runs",
    summary="All runs as a stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/csv": {}, "application/x-ndjson": {}}}, **responses(404)},
)
async def export(
    served: Served,
    form: Annotated[Literal["csv", "ndjson"], Query(alias="format")] = "csv",
    target: Annotated[str | None, Query(max_length=200)] = None,
    since: From = None,
    to: To = None,
) -> StreamingResponse:
    """Runs, the newest first, without limit to memory: CSV with a header line, or one JSON object a line."""
    name = None if target is None else find_target(served.config(), target).name
    async with reading(served.database):
        pass  # away is a 503, not a body that ends after its status
    wanted = RunFilter(target=name, since=since, until=to)
    return StreamingResponse(
        _chunks(served, wanted, as_csv=form == "csv"),
        media_type="text/csv; charset=utf-8; header=present" if form == "csv" else "application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="runs.{form}"'},
    )


async def _chunks(served: Services, wanted: RunFilter, *, as_csv: bool) -> AsyncIterator[bytes]:
    buffer = bytearray(csv_line(_NAMES) if as_csv else b"")
    async with reading(served.database) as session:
        async for row in stream_runs(session, wanted, limit=served.limits.exported_runs):
            buffer += csv_line(tuple(getattr(row, name) for name in _NAMES)) if as_csv else msgspec.json.encode(row) + b"\n"
            if len(buffer) >= CHUNK:
                yield bytes(buffer)
                buffer.clear()
    yield bytes(buffer)


def csv_line(values: tuple[object, ...]) -> bytes:
    """One line of RFC 4180. Text that a spreadsheet would take for a formula gets an apostrophe before it."""
    line = io.StringIO()
    csv.writer(line).writerow([_cell(value) for value in values])
    return line.getvalue().encode()


def _cell(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat()
        case bool():
            return "true" if value else "false"
        case str() if value.startswith(_FORMULA):
            return "'" + value
        case _:
            return value
