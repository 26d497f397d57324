"""Providers and targets: what is watched, and how it stands."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated

from fastapi import APIRouter, Query

from app.api.params import Cursor, From, Limit, Name, Reading, Served, To, find_target
from app.api.problems import responses
from app.api.views import ProviderOut, ProvidersOut, RunsOut, SpentOut, TargetOut, TargetsOut, VerdictOut, VerdictsOut
from app.errors import NotFoundError
from app.measurement.model import Outcome
from app.storage.queries.cursors import decode_cursor, encode_cursor
from app.storage.queries.fleet import Standing, standings, verdicts_of
from app.storage.queries.runs import RunFilter, list_runs
from app.storage.queries.state import spent_today
from app.verdict.model import State

router = APIRouter(tags=["targets"], responses=responses())


@router.get("/providers", summary="All providers")
async def providers(served: Served, session: Reading) -> ProvidersOut:
    """Each provider with its budget, what is spent of it today, and the gravest state of its targets."""
    config, now = served.config(), served.clock.now()
    said = await verdicts_of(session, config.targets, now=now)
    spent = await spent_today(session, day=now.astimezone(UTC).date())
    items = []
    for provider in config.providers.values():
        mine = [Standing(target=t, verdicts=said.get(t.name, ())) for t in config.targets if t.provider.name == provider.name]
        gravest = [verdict for standing in mine for verdict in standing.verdicts]
        tokens, usd = spent.get(f"provider:{provider.name}", (0, 0.0))
        worst = Standing(target=mine[0].target, verdicts=tuple(gravest)).state if mine else State.UNKNOWN
        items.append(
            ProviderOut(
                name=provider.name,
                base_url=provider.base_url,
                dialect=provider.dialect,
                max_concurrency=provider.max_concurrency,
                has_key=provider.api_key is not None,
                budget=provider.budget,
                spent_today=SpentOut(tokens=tokens, usd=usd),
                targets=[standing.target.name for standing in mine],
                state=worst,
            )
        )
    return ProvidersOut(items=items)


@router.get("/targets", summary="All targets")
async def targets(
    served: Served,
    session: Reading,
    provider: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = 500,
    cursor: Cursor = None,
) -> TargetsOut:
    """Each target with its state, verdicts, last run and last day, by name."""
    config = served.config()
    wanted = sorted((t for t in config.targets if provider in {None, t.provider.name}), key=lambda t: t.name)
    if cursor is not None:
        (after,) = decode_cursor(cursor, str)
        wanted = [target for target in wanted if target.name > after]
    page = wanted[:limit]
    found = await standings(session, page, now=served.clock.now())
    following = encode_cursor(page[-1].name) if len(wanted) > limit else None
    return TargetsOut(items=[TargetOut.of(standing) for standing in found], next_cursor=following)


@router.get("/verdicts", summary="What is said of all targets")
async def verdicts(served: Served, session: Reading, state: State | None = None) -> VerdictsOut:
    """The current verdict of each target at each location, with its evidence."""
    config = served.config()
    said = await verdicts_of(session, config.targets, now=served.clock.now())
    found = [verdict for target in config.targets for verdict in said.get(target.name, ())]
    return VerdictsOut(items=[VerdictOut.of(verdict) for verdict in found if state in {None, verdict.state}])


@router.get("/targets/{name:path}/verdict", summary="What is said of a target", responses=responses(404))
async def verdict(
    served: Served, session: Reading, name: Name, location: Annotated[str | None, Query(max_length=63)] = None
) -> VerdictOut:
    """The gravest verdict over the target's locations, or that of one location."""
    target = find_target(served.config(), name)
    said = (await verdicts_of(session, [target], now=served.clock.now())).get(name, ())
    found = Standing(target=target, verdicts=tuple(v for v in said if location in {None, v.location})).worst
    if found is None:
        raise NotFoundError(f"nothing is known of '{name}' yet" if location is None else f"nothing is known from '{location}'")
    return VerdictOut.of(found)


@router.get("/targets/{name:path}/runs", summary="Runs of a target", responses=responses(404))
async def runs(
    *,
    served: Served,
    session: Reading,
    name: Name,
    since: From = None,
    to: To = None,
    outcome: Annotated[list[Outcome] | None, Query(description="only these outcomes; may be given several times")] = None,
    location: Annotated[str | None, Query(max_length=63)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RunsOut:
    """The newest first. `from` and `to` are about due times."""
    target = find_target(served.config(), name)
    wanted = RunFilter(
        target=target.name, since=since, until=to, outcomes=tuple(o.value for o in outcome or ()), location=location
    )
    page = await list_runs(session, wanted, limit=limit, cursor=cursor)
    return RunsOut(items=list(page.items), next_cursor=page.next_cursor)


@router.get("/targets/{name:path}", summary="One target", responses=responses(404))
async def target(served: Served, session: Reading, name: Name) -> TargetOut:
    """A target with its state, verdicts, last run and last day."""
    found = await standings(session, [find_target(served.config(), name)], now=served.clock.now())
    return TargetOut.of(found[0])
