"""Why is a target slow, or impossibly fast? Asked for here; a worker of the location finds out."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict, Field

from app.api.params import Asking, Limit, Listed, Name, Reading, Served, Writing, find_target
from app.api.problems import responses
from app.errors import ConfigError, Problem
from app.storage.queries.diagnoses import DiagnosisRow, ask, list_diagnoses
from app.storage.queries.keys import write_audit
from app.verdict.diagnosis.course import BUDGET_TOKENS
from app.verdict.diagnosis.model import Experiment

router = APIRouter(tags=["diagnose"], responses=responses(404, 409))


class DiagnoseIn(BaseModel):
    """What is to be found out. Everything may be left out."""

    model_config = ConfigDict(extra="forbid")

    location: str | None = Field(default=None, max_length=200, description="one of the target's; its first unless given")
    tests: list[Experiment] = Field(default_factory=list, max_length=8, description="only these experiments; all unless given")
    budget_tokens: int = Field(default=BUDGET_TOKENS, ge=0, le=10_000_000, description="the most tokens to spend")


class ProgressOut(BaseModel):
    """The experiment under way: rounds done, and of how many."""

    experiment: str
    done: int
    of: int


class DiagnosisOut(BaseModel):
    """One diagnosis; `report` is there once it is done, `error` where it failed."""

    id: str
    target: str
    location: str
    state: Literal["queued", "running", "done", "failed"]
    asked_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: ProgressOut | None
    error: str | None
    report: dict[str, Any] | None

    @classmethod
    def of(cls, row: DiagnosisRow) -> DiagnosisOut:
        """The row as it is."""
        return cls.model_validate(asdict(row))


class DiagnosesOut(Listed):
    """Diagnoses of a target, the latest first."""

    items: list[DiagnosisOut]


@router.post("/targets/{name:path}/diagnose", summary="Find out why a target is slow", status_code=202)
async def diagnose(
    *, served: Served, session: Writing, asking: Asking, name: Name, wish: Annotated[DiagnoseIn | None, Body()] = None
) -> DiagnosisOut:
    """Queue a diagnosis at one location. It takes some minutes and spends tokens of the target's budgets; 409 while one is
    under way. Follow it with GET.
    """
    target, now, wish = find_target(served.config(), name), served.clock.now(), wish or DiagnoseIn()
    location = wish.location if wish.location is not None else target.locations[0]
    if location not in target.locations:
        known = ", ".join(target.locations)
        raise ConfigError([Problem(field="location", message=f"'{name}' is not probed from there; known: {known}")])
    question = {"budget_tokens": wish.budget_tokens, "tests": [str(test) for test in wish.tests]}
    row = await ask(session, uuid4().hex, target=name, location=location, question=question, now=now)
    await write_audit(session, at=now, actor=asking.name, action="target.diagnose", subject=name, detail=question)
    return DiagnosisOut.of(row)


@router.get("/targets/{name:path}/diagnose", summary="Diagnoses of a target")
async def diagnoses(*, served: Served, session: Reading, name: Name, limit: Limit = 10) -> DiagnosesOut:
    """The latest first, with progress while one runs and the report once it is done."""
    find_target(served.config(), name)
    return DiagnosesOut(items=[DiagnosisOut.of(row) for row in await list_diagnoses(session, name, limit=limit)])
