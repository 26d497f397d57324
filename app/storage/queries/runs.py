"""Runs as people look at them: pages of them, one of them, a stream of all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Select, Text, cast, func, select, true, tuple_

from app.errors import NotFoundError
from app.measurement.model import Measurement
from app.storage import tables
from app.storage.documents import from_document
from app.storage.queries.cursors import Page, decode_cursor, encode_cursor, page_of
from app.storage.queries.session import ReadSession

BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One line of a list of runs."""

    id: str
    target: str
    location: str
    provider: str
    model: str
    recipe: str
    due_at: datetime
    started_at: datetime
    finished_at: datetime
    outcome: str
    error_class: str
    connection: str
    ttft_s: float | None
    ttft_reliable: bool
    decode_tps: float | None
    tpot_s: float | None
    tps_reliable: bool
    e2e_s: float | None
    gap_max_s: float | None
    output_tokens: int | None
    contaminated: bool
    cost_usd: float | None
    has_recording: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """One run with everything that is kept of it; `read_stamps_s` and `read_tokens` have one entry an output read."""

    run: RunRow
    measurement: Measurement
    read_stamps_s: tuple[float, ...]
    read_tokens: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs: conditions that must all hold. Times are the runs' due times, `since` included and `until` not."""

    target: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    outcomes: tuple[str, ...] = ()
    location: str | None = None


_r = tables.runs
_COLUMNS = tuple(_r.c[field.name] for field in fields(RunRow))
_NAMES = tuple(field.name for field in fields(RunRow))


def _row(row: Any) -> RunRow:  # noqa: ANN401 - a row with _COLUMNS
    return RunRow(**{name: getattr(row, name) for name in _NAMES})


def _matching(wanted: RunFilter) -> Select[Any]:
    """The runs that match, newest first. The order is the partitions' own, so a short page touches only the newest days."""
    query = select(*_COLUMNS).order_by(_r.c.due_at.desc(), _r.c.target.desc(), _r.c.location.desc())
    if wanted.target is not None:
        query = query.where(_r.c.target == wanted.target)
    if wanted.location is not None:
        query = query.where(_r.c.location == wanted.location)
    if wanted.since is not None:
        query = query.where(_r.c.due_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(_r.c.due_at < wanted.until)
    if wanted.outcomes:
        query = query.where(_r.c.outcome.in_(wanted.outcomes))
    return query


async def list_runs(session: ReadSession, wanted: RunFilter, *, limit: int, cursor: str | None = None) -> Page[RunRow]:
    """A page of runs, newest first.

    Raises:
        UsageError: the cursor is none of a list of runs.
    """
    query = _matching(wanted)
    if cursor is not None:
        due_at, target, location = decode_cursor(cursor, datetime, str, str)
        query = query.where(
            _r.c.due_at <= due_at,  # what partitions are pruned by
            tuple_(_r.c.due_at, _r.c.target, _r.c.location) < (due_at, target, location),
        )
    rows = [_row(row) for row in (await session.connection.execute(query.limit(limit + 1))).all()]
    last = rows[min(limit, len(rows)) - 1] if rows else None
    following = None if last is None else encode_cursor(last.due_at, last.target, last.location)
    return page_of(rows, limit=limit, cursor=following)


async def get_run(session: ReadSession, run_id: str) -> RunDetail:
    """One run.

    Raises:
        NotFoundError: nobody knows it; it may be older than what is kept.
    """
    query = select(*_COLUMNS, _r.c.measurement, _r.c.read_stamps_s, _r.c.read_tokens).where(_r.c.id == run_id).limit(1)
    row = (await session.connection.execute(query)).first()
    if row is None:
        raise NotFoundError(f"no run '{run_id[:80]}'; it may be older than what is kept")
    return RunDetail(
        run=_row(row),
        measurement=from_document(row.measurement, Measurement),
        read_stamps_s=tuple(row.read_stamps_s),
        read_tokens=tuple(row.read_tokens),
    )


async def recording_of(session: ReadSession, run_id: str) -> bytes | None:
    """The compressed recording of a run, where it is kept as evidence."""
    k = tables.recordings
    found: bytes | None = (await session.connection.execute(select(k.c.content).where(k.c.run_id == run_id))).scalar()
    return found


async def last_runs(session: ReadSession, targets: tuple[str, ...], *, since: datetime) -> dict[str, RunRow]:
    """The newest run of each target, if it was due since then."""
    wanted = select(func.unnest(cast(list(targets), ARRAY(Text()))).label("name")).subquery()
    newest = (
        select(*_COLUMNS)
        .where(_r.c.target == wanted.c.name, _r.c.due_at >= since)
        .order_by(_r.c.due_at.desc())
        .limit(1)
        .lateral("newest")
    )
    query = select(*(newest.c[name] for name in _NAMES)).select_from(wanted.join(newest, onclause=true()))
    return {row.target: _row(row) for row in (await session.connection.execute(query)).all()}


async def stream_runs(session: ReadSession, wanted: RunFilter, *, limit: int | None = None) -> AsyncIterator[RunRow]:
    """All matching runs, newest first, read in batches from a cursor of the server: memory stays flat."""
    query = _matching(wanted) if limit is None else _matching(wanted).limit(limit)
    result = await session.connection.stream(query.execution_options(yield_per=BATCH))
    async for row in result:
        yield _row(row)


async def targets_with_runs(session: ReadSession) -> tuple[str, ...]:
    """The names of all targets that ever ran, in order."""
    t = tables.totals
    return tuple((await session.connection.execute(select(t.c.target).distinct().order_by(t.c.target))).scalars())
