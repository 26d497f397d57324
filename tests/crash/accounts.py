"""The accounts after a crash test: what the grid asked for, what Postgres has, what providers and the receiver saw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import text

from app.storage.database import Database
from app.storage.ticks import tick_counts
from app.targets.grid import Grid
from tests.crash.journal import CALL, CLAIM, Journal, Repeats
from tests.crash.surroundings import Message

_TICKS = """
SELECT count(*) AS claims, count(*) FILTER (WHERE c.result IS NULL) AS open,
  count(*) FILTER (WHERE c.result = 'missed') AS missed,
  count(*) FILTER (WHERE c.result LIKE 'skipped_%') AS skipped,
  coalesce(sum(greatest(c.attempts - 1, 0)), 0)::int AS repeated,
  count(*) FILTER (WHERE r.id IS NULL AND c.result IN ('run', 'late', 'skipped_budget')) AS told_without_run,
  count(*) FILTER (WHERE r.id IS NOT NULL AND c.result NOT IN ('run', 'late', 'skipped_budget')) AS run_told_otherwise,
  count(r.id) AS runs
FROM claims c LEFT JOIN runs r USING (due_at, target, location)
"""
_OTHERS = """
SELECT (SELECT count(*) FROM runs) AS all_runs,
  (SELECT count(*) FROM (SELECT 1 FROM runs GROUP BY due_at, target, location HAVING count(*) > 1) d) AS twice,
  (SELECT count(*) FROM pgqueuer) AS jobs_left,
  (SELECT count(*) FROM outbox WHERE state = 'pending') AS pending,
  (SELECT count(*) FROM outbox WHERE state = 'pending' AND next_at < now() - interval '15 s') AS overdue,
  (SELECT count(*) FROM outbox WHERE state = 'dead') AS dead,
  (SELECT count(*) FROM outbox WHERE lease_owner IS NOT NULL) AS leases,
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS connections,
  (SELECT count(*) FROM runs WHERE finished_at < started_at) AS negative,
  (SELECT at FROM schedule_mark) AS walked
"""
_CHANGES = """
SELECT e.incident_id AS incident, e.kind AS kind, count(*) AS n FROM incident_events e
WHERE e.kind IN ('opened', 'updated', 'resolved') GROUP BY 1, 2
"""
_ANNOUNCED = "SELECT seq, id, incident_id AS incident, type, state FROM outbox ORDER BY seq"
_PER_TARGET = """
SELECT c.target, sum(c.attempts)::int AS claims, count(r.id) AS runs
FROM claims c LEFT JOIN runs r USING (due_at, target, location) GROUP BY 1
"""


@dataclass(kw_only=True)
class Accounts:
    """Figures, and what is wrong with them."""

    figures: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def law(self, holds: bool, sentence: str) -> None:  # noqa: FBT001 - a law holds or not
        """Note a law that does not hold."""
        if not holds:
            self.wrong.append(sentence)


async def settle(
    database: Database,
    *,
    begun: datetime,
    every_s: float,
    calls: Mapping[str, int],
    messages: Sequence[Message],
    journal: Journal,
) -> Accounts:
    """Compare everything with everything."""
    accounts = Accounts()
    async with database.read() as connection:

        async def rows(query: str) -> list[Any]:
            return list((await connection.execute(text(query))).all())

        ticks, others = (await rows(_TICKS))[0], (await rows(_OTHERS))[0]
        counted = await tick_counts(connection)
        changes = {(row.incident, row.kind): row.n for row in await rows(_CHANGES)}
        announced = await rows(_ANNOUNCED)
        per_target = {row.target.removesuffix("/m"): row for row in await rows(_PER_TARGET)}
    due = sum(Grid.of(f"{name}/m", "default", every_s=every_s).count(begun, others.walked) for name in calls)
    _ticks(accounts, ticks, others, counted, due)
    _calls(accounts, calls, per_target)
    _claimed_again(accounts, ticks, journal.repeats(CLAIM))
    _called_again(accounts, sum(calls.values()), journal)
    _announcements(accounts, changes, announced, messages)
    _leaks(accounts, others)
    return accounts


def _ticks(accounts: Accounts, ticks: Any, others: Any, counted: Mapping[str, int], due: int) -> None:
    passed = counted.get("missed", 0) - ticks.missed
    accounts.figures |= {
        "ticks due": due,
        "ticks with a stored run": ticks.runs,
        "ticks missed (too late to run)": counted.get("missed", 0),
        "ticks skipped": ticks.skipped,
        "ticks claimed again after a crash": ticks.repeated,
    }
    accounts.law(ticks.open == 0, f"{ticks.open} ticks were taken and have no result")
    accounts.law(ticks.claims + passed == due, f"{due} ticks were due, and {ticks.claims} + {passed} are accounted for")
    accounts.law(ticks.told_without_run == 0, f"{ticks.told_without_run} ticks count as run without a run")
    accounts.law(ticks.run_told_otherwise == 0, f"{ticks.run_told_otherwise} ticks have a run and another result too")
    accounts.law(others.all_runs == ticks.runs, f"{others.all_runs - ticks.runs} runs belong to no tick")
    accounts.law(others.twice == 0, f"{others.twice} ticks are stored twice")
    accounts.law(sum(counted.values()) == due, f"the counters say {sum(counted.values())} ticks, {due} were due")
    accounts.law(others.negative == 0, f"{others.negative} runs ended before they began")


def _calls(accounts: Accounts, calls: Mapping[str, int], per_target: Mapping[str, Any]) -> None:
    made, runs = sum(calls.values()), sum(row.runs for row in per_target.values())
    accounts.figures |= {"calls at the providers": made, "calls without a stored run (a crash came between)": made - runs}
    for name, n in calls.items():
        row = per_target.get(name)
        most = 0 if row is None else row.claims
        accounts.law(n <= most, f"{name} was called {n} times for {most} claims")
        accounts.law(row is None or n >= row.runs, f"{name} was called {n} times and has more runs")
    without = sum(row.claims - row.runs for row in per_target.values())
    accounts.law(made - runs <= without, f"{made - runs} calls are without a run, and only {without} claims")


def _claimed_again(accounts: Accounts, ticks: Any, repeats: Repeats) -> None:
    """A tick is taken a second time only after a crash of the first; how soon, and whether the repeats all count."""
    took_s = sorted((second.at_ns - first.at_ns) / 1e9 for first, second in repeats.excused)
    if took_s:
        accounts.figures["seconds from a claim to the next one, median and longest"] = (
            f"{took_s[len(took_s) // 2]:.1f}, {took_s[-1]:.1f}"
        )
    others = repeats.others
    accounts.law(not others, f"{len(others)} ticks were taken twice and nobody had crashed: {others[:3]}")
    written = len(repeats.excused) + len(others)
    accounts.law(ticks.repeated >= written, f"{written} repeats were seen, and {ticks.repeated} counted")


def _called_again(accounts: Accounts, made: int, journal: Journal) -> None:
    """A provider is called twice for a tick only after a crash between the first call and its commit; every call has its tick."""
    calls = journal.repeats(CALL)
    accounts.figures["ticks sent to a provider twice (a crash came between call and commit)"] = len(calls.excused)
    others = calls.others
    accounts.law(not others, f"{len(others)} ticks were sent twice and nobody had crashed: {others[:3]}")
    accounts.law(made <= calls.steps, f"{made} calls at the providers, and only {calls.steps} belong to a tick")
    most = calls.steps - journal.hits
    accounts.law(made >= most, f"{calls.steps} calls were begun, {made} arrived, and only {journal.hits} crashes came between")


def _announcements(
    accounts: Accounts, changes: Mapping[tuple[str, str], int], announced: Sequence[Any], messages: Sequence[Message]
) -> None:
    taken: dict[str, list[Message]] = defaultdict(list)
    order: dict[str, list[str]] = defaultdict(list)
    for message in messages:
        if message.taken:
            if not taken[message.id]:
                order[message.incident].append(message.id)
            taken[message.id].append(message)
    kinds: dict[tuple[str, str], int] = defaultdict(int)
    expected: dict[str, list[str]] = defaultdict(list)
    for row in announced:
        expected[row.incident].append(row.id)
        kinds[row.incident, row.type.removeprefix("incident.")] += 1
    told = {key: n for key, n in kinds.items() if key[1] in {"opened", "updated", "resolved"}}
    accounts.figures |= {
        "incidents opened": sum(n for (_, kind), n in changes.items() if kind == "opened"),
        "incidents resolved": sum(n for (_, kind), n in changes.items() if kind == "resolved"),
        "messages announced": len(announced),
        "requests at the receiver": len(messages),
        "of those refused, cut or left hanging": sum(not message.taken for message in messages),
        "messages delivered more than once": sum(len(each) > 1 for each in taken.values()),
    }
    accounts.law(told == dict(changes), "changes of incidents and announcements differ")
    undelivered = [row.id for row in announced if row.id not in taken]
    accounts.law(not undelivered, f"{len(undelivered)} announcements never arrived")
    accounts.law(all(row.state == "delivered" for row in announced), "an announcement is not marked as delivered")
    accounts.law(all(order[incident] == ids for incident, ids in expected.items()), "messages of an incident came out of order")
    accounts.law(all(message.verified for message in messages), "a signature does not fit")
    bodies = defaultdict(set)
    for message in messages:
        bodies[message.id].add(message.body)
    accounts.law(all(len(each) == 1 for each in bodies.values()), "one id stands on different bodies")


def _leaks(accounts: Accounts, others: Any) -> None:
    accounts.law(others.jobs_left == 0, f"{others.jobs_left} jobs are left in the queue")
    accounts.law(others.pending == 0, f"{others.pending} announcements still wait")
    accounts.law(others.overdue == 0, f"{others.overdue} announcements wait longer than their back-off")
    accounts.law(others.dead == 0, f"{others.dead} announcements were given up")
    accounts.law(others.leases == 0, f"{others.leases} leases are left")
    accounts.law(others.connections == 0, f"{others.connections} connections are left")
