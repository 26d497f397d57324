"""What is looked at once a second while replicas die: announcements past their back-off, connections, processes."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

import psutil

from app.storage.database import Database

_OVERDUE = """
SELECT coalesce(extract(epoch FROM max(now() - greatest(next_at, coalesce(leased_until, next_at)))), 0)::float8
FROM (
  SELECT DISTINCT ON (channel, coalesce(incident_id, id)) * FROM outbox
  WHERE state = 'pending' ORDER BY channel, coalesce(incident_id, id), seq
) first
"""
"""Seconds that the first announcement of an incident has been free to be taken: past its back-off and past any lease."""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
LOOK_S = 1.0


@dataclass(slots=True, kw_only=True)
class Lookout:
    """The most of each that was seen."""

    database: Database
    config: Path
    looks: int = 0
    overdue_s: float = 0.0
    connections: int = 0
    processes: int = 0

    async def keep(self) -> None:
        """Look until cancelled; while Postgres restarts there is nothing to see."""
        while True:
            with contextlib.suppress(Exception):
                await self._look()
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        self.processes = max(self.processes, len(self.left()))
        raw = await self.database.connect_raw()
        try:
            self.overdue_s = max(self.overdue_s, await raw.fetchval(_OVERDUE))
            self.connections = max(self.connections, await raw.fetchval(_CONNECTIONS))
            self.looks += 1
        finally:
            await raw.close(timeout=2)

    def left(self) -> list[int]:
        """Processes of the replicas."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            command = process.info["cmdline"] or []
            if "tests.crash.replica" in command and str(self.config) in command:
                found.append(process.pid)
        return found
