"""The shapes that the API answers with, made from what the rest of the program knows."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from app.api.params import Listed
from app.expectation.model import Basis, Confidence
from app.storage.queries.fleet import Standing
from app.storage.queries.incidents import IncidentDetail
from app.storage.queries.runs import RunRow
from app.storage.queries.summaries import Summary
from app.targets.model import Budget, Channel, Connection, Deadlines, Deployment, Slo
from app.verdict.body import incident_json, verdict_json
from app.verdict.model import Incident, IncidentState, Severity, State, Verdict

TOKEN_CHARS = 16


class TtftOut(BaseModel):
    """TTFT of the window, in seconds; null where samples do not suffice."""

    p50: float | None
    p95: float | None


class BaselineOut(BaseModel):
    """The target's own level of speed, in tokens per second: since when, and what it was before (null: always this)."""

    tps: float
    before_tps: float | None
    since: datetime


class VerdictOut(BaseModel):
    """What is said of a target at a location, with its evidence; speeds in tokens per second of one stream."""

    target: str
    location: str
    state: State
    severity: Severity
    since: datetime
    observed: float | None
    expected: float | None
    ceiling: float | None
    ratio: float | None
    ceiling_ratio: float | None
    confidence: Confidence
    samples: int
    window_s: float
    basis: Basis | None
    assumptions: list[str]
    reasons: list[str]
    explanation: str
    fit_for: list[str]
    checked_at: datetime
    observed_interval: list[float] | None
    ttft_s: TtftOut
    baseline: BaselineOut | None

    @classmethod
    def of(cls, verdict: Verdict) -> VerdictOut:
        """The verdict, as its JSON has it everywhere."""
        return cls.model_validate(verdict_json(verdict))


class IncidentOut(BaseModel):
    """A spell of one rule being broken at one target and location."""

    id: str
    target: str
    provider: str
    model: str
    location: str
    rule: str
    severity: Severity
    state: IncidentState
    opened_at: datetime
    resolved_at: datetime | None
    acknowledged_at: datetime | None
    updated_at: datetime
    resolve_reason: str | None
    summary: str
    held: str | None
    """Why it has not been announced as it stands: `silence` or `maintenance`."""

    @classmethod
    def of(cls, incident: Incident) -> IncidentOut:
        """The incident, as its JSON has it everywhere."""
        return cls.model_validate(incident_json(incident))


class IncidentEventOut(BaseModel):
    """One step of an incident's life."""

    at: datetime
    kind: str
    summary: str
    verdict: VerdictOut | None


class IncidentDetailOut(IncidentOut):
    """An incident with the verdict it last rested on and its timeline, oldest first."""

    verdict: VerdictOut | None
    timeline: list[IncidentEventOut]

    @classmethod
    def of_detail(cls, detail: IncidentDetail) -> IncidentDetailOut:
        """All of it."""
        return cls(
            **IncidentOut.of(detail.incident).model_dump(),
            verdict=None if detail.verdict is None else VerdictOut.of(detail.verdict),
            timeline=[
                IncidentEventOut(
                    at=event.at,
                    kind=event.kind,
                    summary=event.summary,
                    verdict=None if event.verdict is None else VerdictOut.of(event.verdict),
                )
                for event in detail.timeline
            ],
        )


class TargetOut(BaseModel):
    """A target: what it is, what is said of it, its last run and its last day."""

    name: str
    provider: str
    model: str
    every_s: float
    recipe: str
    locations: list[str]
    connection: Connection
    deployment: Deployment | None
    slo: Slo | None
    budget: Budget
    deadlines: Deadlines
    origin: Literal["file", "api"]
    paused: bool
    state: State
    severity: Severity
    verdict: VerdictOut | None
    """The gravest of `verdicts`."""
    verdicts: list[VerdictOut]
    last_run: RunRow | None
    summary_24h: Summary

    @classmethod
    def of(cls, standing: Standing) -> TargetOut:
        """How a target stands."""
        target, worst = standing.target, standing.worst
        return cls(
            name=target.name,
            provider=target.provider.name,
            model=target.model,
            every_s=target.every_s,
            recipe=target.recipe.name,
            locations=list(target.locations),
            connection=target.connection,
            deployment=target.deployment,
            slo=target.slo,
            budget=target.budget,
            deadlines=target.deadlines,
            origin=target.origin,
            paused=target.paused,
            state=standing.state,
            severity=Severity.NONE if worst is None else worst.severity,
            verdict=None if worst is None else VerdictOut.of(worst),
            verdicts=[VerdictOut.of(verdict) for verdict in standing.verdicts],
            last_run=standing.last_run,
            summary_24h=standing.summary or Summary(target=target.name),
        )


class SpentOut(BaseModel):
    """What was reserved or used on this UTC day."""

    tokens: int
    usd: float


class ProviderOut(BaseModel):
    """An endpoint. `state` is the gravest of its targets'."""

    name: str
    base_url: str
    dialect: str | None
    max_concurrency: int
    has_key: bool
    budget: Budget
    spent_today: SpentOut
    targets: list[str]
    state: State


class ChannelOut(BaseModel):
    """Where alerts go. Secrets and references are shown as what they are called, never as what they hold."""

    name: str
    kind: str
    urls: list[str]
    secrets: list[str]
    origin: Literal["file", "api"]
    disabled: str | None
    """Why nothing is sent to it any more; null: it is used."""
    trouble: str | None
    """`channel_fails` when it has taken nothing for a while, `channel_disabled`; null: none is known."""

    @classmethod
    def of(cls, channel: Channel, *, disabled: str | None = None, trouble: str | None = None) -> ChannelOut:
        """A channel. A URL's query may hold a token, and an Apprise URL nearly always does: they are cut."""
        return cls(
            name=channel.name,
            kind=channel.kind,
            urls=[shown_url(str(url), kind=channel.kind) for url in channel.urls],
            secrets=[str(secret) for secret in channel.secrets],
            origin=channel.origin,
            disabled=disabled,
            trouble=trouble,
        )


def shown_url(url: str, *, kind: str) -> str:
    """A channel's URL without what may be secret in it: its query, and parts of its path that are too long for words.

    A reference is shown as it is.
    """
    if url.startswith("${"):
        return url
    scheme, _, rest = url.partition("://")
    if kind == "apprise":
        return f"{scheme}://…"
    place, mark, _ = rest.partition("?")
    host, *path = place.split("/")
    shown = "/".join([host, *("…" if len(part) >= TOKEN_CHARS else part for part in path)])
    return f"{scheme}://{shown}" + ("?…" if mark else "")


class TargetsOut(Listed):
    """A list of targets."""

    items: list[TargetOut]


class ProvidersOut(Listed):
    """A list of providers."""

    items: list[ProviderOut]


class RunsOut(Listed):
    """A list of runs."""

    items: list[RunRow]


class VerdictsOut(Listed):
    """A list of verdicts."""

    items: list[VerdictOut]


class IncidentsOut(Listed):
    """A list of incidents."""

    items: list[IncidentOut]


class ChannelsOut(Listed):
    """A list of channels."""

    items: list[ChannelOut]
