"""A child whose event loop stands still is killed; one that lives, or never promised a sign, is not."""

import asyncio
import uuid

import pytest

from app.bootstrap.child import Child

LIVING = """
import asyncio, time
from app.bootstrap import child
child.PULSE_S = 0.02
async def main():
    life = asyncio.create_task(child.show_life(stop=asyncio.Event()))
    await asyncio.sleep({good_s})
    time.sleep({stuck_s})
asyncio.run(main())
"""


async def lived(code: str, *, looks: int) -> int | None:
    child = Child(name="c", arguments=["-c", code], environment={}, grace_s=5.0, silent_looks=looks, pulse_s=0.05)
    running = asyncio.create_task(child.run())
    while child._process is None:
        await asyncio.sleep(0.01)
    process = child._process
    async with asyncio.timeout(60):
        await running
    return process.returncode


def test_a_child_that_stands_still_is_killed() -> None:
    assert asyncio.run(lived(LIVING.format(good_s=0.2, stuck_s=600), looks=20)) == -9


def test_a_child_that_gives_signs_is_left_alone() -> None:
    assert asyncio.run(lived(LIVING.format(good_s=1.0, stuck_s=0), looks=200)) == 0


def test_a_child_that_never_promised_a_sign_is_left_alone() -> None:
    assert asyncio.run(lived("import time; time.sleep(1)", looks=2)) == 0


def test_a_process_without_a_parent_shows_its_life_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.bootstrap.child import PULSE, show_life

    monkeypatch.delenv(PULSE, raising=False)

    async def scenario() -> None:
        stop = asyncio.Event()
        showing = asyncio.create_task(show_life(stop=stop))
        await asyncio.sleep(0)
        stop.set()
        await showing

    asyncio.run(scenario())


def test_children_of_one_place_bear_one_name_and_a_process_without_a_parent_one_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from app.bootstrap.child import LINE, line

    monkeypatch.delenv(LINE, raising=False)
    assert line() != line()
    monkeypatch.setenv(LINE, "0190f000-0000-7000-8000-000000000001")
    assert line() == line() == uuid.UUID("0190f000-0000-7000-8000-000000000001")
