"""What a scrape shows, gathered from the database and from the process."""

from __future__ import annotations

from dataclasses import dataclass

from app.api.services import Services
from app.metrics.snapshot import Cell, Process, Service, Snapshot, Watched
from app.storage.queries.fleet import verdicts_of
from app.storage.queries.session import reading
from app.storage.queries.state import StateNow, state_now
from app.targets.model import Target
from app.verdict.model import Verdict
from app.verdict.outbox import DeliveryState


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at the database: counts and ages, and what is said of each target."""

    state: StateNow
    verdicts: dict[str, tuple[Verdict, ...]]


async def look(services: Services) -> Look:
    """Read all of it.

    Raises:
        UnavailableError: the database is away.
    """
    now = services.clock.now()
    async with reading(services.database) as session:
        state = await state_now(session, now=now)
        verdicts = await verdicts_of(session, services.config().targets, now=now)
    return Look(state=state, verdicts=verdicts)


def snapshot(services: Services, seen: Look | None) -> Snapshot:
    """The snapshot to render; without a look at the database, only what the process knows."""
    lags = [services.loop_lag_s(), *([] if seen is None else _stats(seen.state, "loop_lag_s"))]
    process = Process(
        build=services.build,
        loop_lag_s=max((lag for lag in lags if lag is not None), default=None),
        pool=services.database.pool_state(),
        config_loaded=services.config_loaded(),
    )
    if seen is None:
        return Snapshot(process=process)
    config = services.config()
    return Snapshot(
        process=process,
        service=_service(services, seen.state),
        watched=tuple(_watched(target, seen) for target in config.targets),
        channels=tuple(config.channels),
    )


def _watched(target: Target, seen: Look) -> Watched:
    verdicts = {verdict.location: verdict for verdict in seen.verdicts.get(target.name, ())}
    newest = max(verdicts.values(), key=lambda verdict: verdict.checked_at, default=None)
    totals = seen.state.totals
    return Watched(
        target=target,
        cells={
            place: Cell(totals=totals[key], verdict=verdicts.get(place))
            for place in target.locations
            if (key := (target.name, place)) in totals
        },
        expected_tps=None if newest is None else newest.expected,
        ceiling_tps=None if newest is None else newest.ceiling,
    )


def _service(services: Services, state: StateNow) -> Service:
    now = services.clock.now()
    oldest = state.oldest_pending_at
    in_flight = _stats(state, "in_flight")
    return Service(
        incidents_open=state.incidents_open,
        ticks=state.ticks,
        notifications=state.notifications,
        last_tick_at=state.walked_at,
        lateness_s=max(_stats(state, "last_lateness_s"), default=None),
        in_flight=int(sum(in_flight)) if in_flight else None,
        queue_oldest_s=state.queue_oldest_s,
        outbox_oldest_s=0.0 if oldest is None else max(0.0, (now - oldest).total_seconds()),
        dead_letters=sum(n for (_, kind), n in state.deliveries.items() if kind is DeliveryState.DEAD),
        partitions_ahead=state.partitions_ahead,
    )


def _stats(state: StateNow, key: str) -> list[float]:
    """A figure of every process that reported lately and has it."""
    return [float(value) for row in state.processes if isinstance(value := row.stats.get(key), int | float)]
