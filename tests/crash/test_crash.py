"""Replicas that are killed anywhere lose no tick, call no provider twice for nothing, and tell of every incident in order."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.fleet import Plan, crash_test
from tests.crash.replica import POINTS


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="bwk-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.timeout(240)
def test_the_accounts_are_right_after_a_few_deaths_of_each_kind(folder: Path) -> None:
    plan = Plan(seconds=20.0, targets=24, every_s=8.0, replicas=2, pause_s=0.5, outage=2.0, frozen_s=2.0, restarts=1)
    accounts, deaths = asyncio.run(crash_test(plan, folder))
    assert accounts.wrong == []
    assert accounts.figures["ticks with a stored run"] > 0
    assert deaths["postgres restarted"] == 1
    assert any(deaths[point] for point in POINTS)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_accounts_are_right_after_ten_minutes(folder: Path) -> None:
    accounts, deaths = asyncio.run(crash_test(Plan(seconds=600.0, targets=50, every_s=15.0, each_point=20), folder))
    assert accounts.wrong == []
    assert all(deaths[point] >= 20 for point in POINTS)
    assert deaths["postgres restarted"] == 3
