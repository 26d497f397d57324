"""The plan of a crash test, and the page of what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.crash.accounts import Accounts


@dataclass(kw_only=True)
class Plan:
    """How much of what."""

    seconds: float
    targets: int
    every_s: float
    replicas: int = 3
    pause_s: float = 2.0
    """Between one death and the next."""
    outage: float = 4.0
    """How long a provider is down, in intervals."""
    frozen_s: float = 15.0
    restarts: int = 3
    seed: int = 1
    each_point: int = 0
    """Deaths at each named point that the time is stretched for, to half as long again at most."""


def report(plan: Plan, accounts: Accounts, deaths: Mapping[str, int]) -> str:
    """The page of figures."""
    lines = [
        "# Crash test",
        "",
        "Made by `make test-crash`: three replicas of all roles on one Postgres, simulated targets of which a quarter is down at any",
        "time, a receiver that refuses, cuts or leaves hanging three requests in ten. Processes are killed with -9 at random and at",
        "named points, Postgres is restarted, a replica is frozen and thawed. Then the accounts are compared:",
        "[tests/crash/accounts.py](../../tests/crash/accounts.py) has the laws.",
        "",
        f"{plan.seconds:g} s, {plan.targets} targets every {plan.every_s:g} s, {plan.replicas} replicas, seed {plan.seed}, one run.",
        "",
        "| what was done | times |",
        "| --- | ---: |",
        *(f"| {what.replace('_', ' ')} | {n} |" for what, n in sorted(deaths.items())),
        "",
        "| what came of it | n |",
        "| --- | ---: |",
        *(f"| {what} | {n} |" for what, n in accounts.figures.items()),
        "",
        "Laws that did not hold: " + ("; ".join(accounts.wrong) if accounts.wrong else "none."),
        "",
    ]
    return "\n".join(lines)
