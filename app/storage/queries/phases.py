"""Where the time of a target's calls goes."""

from __future__ import annotations

from statistics import median

from sqlalchemy import select

from app.measurement.model import Measurement
from app.storage.documents import from_document
from app.storage.queries.figures import OK
from app.storage.queries.session import ReadSession
from app.storage.tables import runs


async def recent_measurements(session: ReadSession, *, target: str, limit: int = 50) -> tuple[Measurement, ...]:
    """The measurements of a target's newest successful runs, newest first."""
    query = select(runs.c.measurement).where(runs.c.target == target, OK).order_by(runs.c.due_at.desc()).limit(limit)
    return tuple(from_document(document, Measurement) for document in (await session.connection.execute(query)).scalars())


def median_phases(measurements: tuple[Measurement, ...]) -> tuple[tuple[str, float], ...]:
    """(phase, median seconds) in the order of a call; phases that did not happen in any run are left out."""
    values: dict[str, list[float]] = {}
    for m in measurements:
        p = m.phases
        first = None if m.ttft_s is None or p.wait_s is None else max(0.0, m.ttft_s - p.wait_s)
        output = None if m.ttft_s is None or m.e2e_s is None else max(0.0, m.e2e_s - m.ttft_s)
        stages = {"dns": p.dns_s, "connect": p.connect_s, "tls": p.tls_s, "send": p.send_s, "wait": p.wait_s}
        for name, seconds in {**stages, "first token": first, "output": output}.items():
            if seconds is not None:
                values.setdefault(name, []).append(seconds)
    order = ("dns", "connect", "tls", "send", "wait", "first token", "output")
    return tuple((name, median(values[name])) for name in order if name in values)
