"""The tables, as queries see them; `migrations/` makes them, and a test holds both together."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Date, DateTime, Float, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY, DOUBLE_PRECISION, JSONB, REAL
from sqlalchemy.types import TypeEngine

metadata = MetaData()
_time = DateTime(timezone=True)


def _table(called: str, /, **columns: TypeEngine[Any]) -> Table:
    return Table(called, metadata, *(Column(key, kind) for key, kind in columns.items()))


runs = _table(
    "runs",
    id=Text(),
    due_at=_time,
    target=Text(),
    location=Text(),
    provider=Text(),
    model=Text(),
    recipe=Text(),
    started_at=_time,
    finished_at=_time,
    outcome=Text(),
    error_class=Text(),
    connection=Text(),
    ttft_s=DOUBLE_PRECISION(),
    ttft_reliable=Boolean(),
    decode_tps=DOUBLE_PRECISION(),
    tpot_s=DOUBLE_PRECISION(),
    tps_reliable=Boolean(),
    e2e_s=DOUBLE_PRECISION(),
    gap_max_s=DOUBLE_PRECISION(),
    connect_s=DOUBLE_PRECISION(),
    tls_s=DOUBLE_PRECISION(),
    output_tokens=Integer(),
    contaminated=Boolean(),
    cost_usd=DOUBLE_PRECISION(),
    has_recording=Boolean(),
    measurement=JSONB(),
    read_stamps_s=ARRAY(DOUBLE_PRECISION()),
    read_tokens=ARRAY(REAL()),
)
recordings = _table("recordings", run_id=Text(), target=Text(), kept_at=_time, content=LargeBinary())
verdicts = _table(
    "verdicts",
    target=Text(),
    location=Text(),
    due_at=_time,
    state=Text(),
    severity=Text(),
    checked_at=_time,
    verdict=JSONB(),
    trail=JSONB(),
)
verdict_changes = _table(
    "verdict_changes",
    id=BigInteger(),
    target=Text(),
    location=Text(),
    at=_time,
    state=Text(),
    severity=Text(),
    verdict=JSONB(),
)
incidents = _table(
    "incidents",
    id=Text(),
    target=Text(),
    provider=Text(),
    model=Text(),
    location=Text(),
    rule=Text(),
    severity=Text(),
    state=Text(),
    opened_at=_time,
    updated_at=_time,
    resolved_at=_time,
    acknowledged_at=_time,
    resolve_reason=Text(),
    summary=Text(),
    verdict=JSONB(),
    channels=ARRAY(Text()),
    held=Text(),
)
incident_events = _table(
    "incident_events", id=BigInteger(), incident_id=Text(), at=_time, kind=Text(), summary=Text(), verdict=JSONB()
)
outbox = _table(
    "outbox",
    seq=BigInteger(),
    id=Text(),
    channel=Text(),
    type=Text(),
    body=JSONB(),
    incident_id=Text(),
    created_at=_time,
    state=Text(),
    attempts=Integer(),
    next_at=_time,
    lease_owner=Text(),
    leased_until=_time,
    finished_at=_time,
    group_key=Text(),
    merged_into=Text(),
)
delivery_attempts = _table(
    "delivery_attempts",
    id=BigInteger(),
    outbox_id=Text(),
    at=_time,
    status=Integer(),
    latency_s=DOUBLE_PRECISION(),
    response=Text(),
)
delivery_counts = _table("delivery_counts", channel=Text(), result=Text(), n=BigInteger())
disabled_channels = _table("disabled_channels", name=Text(), at=_time, reason=Text())
budgets = _table("budgets", scope=Text(), day=Date(), tokens=BigInteger(), usd=Float())
claims = _table(
    "claims",
    due_at=_time,
    target=Text(),
    location=Text(),
    owner=Text(),
    claimed_at=_time,
    attempts=Integer(),
    result=Text(),
    counted=Boolean(),
)
tick_counts = _table("tick_counts", result=Text(), n=BigInteger())
totals = _table("totals", target=Text(), location=Text(), totals=JSONB())
processes = _table("processes", instance=Text(), role=Text(), location=Text(), started_at=_time, beat_at=_time, stats=JSONB())
schedule_mark = _table("schedule_mark", one=Boolean(), at=_time, keys=ARRAY(Text()), high=_time, turn=Integer(), saved_at=_time)
api_targets = _table("api_targets", name=Text(), document=JSONB(), created_at=_time)
api_channels = _table("api_channels", name=Text(), document=JSONB(), created_at=_time)
paused_targets = _table("paused_targets", name=Text(), at=_time)
silences = _table("silences", id=Text(), match=JSONB(), starts_at=_time, ends_at=_time, comment=Text(), created_at=_time)
api_keys = _table("api_keys", id=Text(), name=Text(), scope=Text(), hash=LargeBinary(), created_at=_time, revoked_at=_time)
audit = _table("audit", id=BigInteger(), at=_time, actor=Text(), action=Text(), object=Text(), detail=JSONB())
rollups = _table("rollups", step_s=Integer(), at=_time, target=Text(), location=Text(), outcomes=JSONB(), histograms=JSONB())
rollup_marks = _table("rollup_marks", step_s=Integer(), until=_time)
rollups_due = _table("rollups_due", at=_time)
diagnoses = _table(
    "diagnoses",
    id=Text(),
    target=Text(),
    location=Text(),
    state=Text(),
    question=JSONB(),
    asked_at=_time,
    started_at=_time,
    beat_at=_time,
    finished_at=_time,
    owner=Text(),
    progress=JSONB(),
    error=Text(),
    report=JSONB(),
)
lessons = _table("lessons", provider=Text(), parameter=Text(), learnt_at=_time)
