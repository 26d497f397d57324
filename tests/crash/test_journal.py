"""Which second claim or call of a tick a crash excuses, and which it does not."""

from pathlib import Path

import pytest

from tests.crash.journal import CALL, CLAIM, DEATH, Journal

A, B = 11, 22


def journal(folder: Path, *lines: tuple[int, int, str, str], hits: dict[int, list[int]] | None = None) -> Journal:
    for pid, at, what, tick in lines:
        with (folder / str(pid)).open("a") as page:
            page.write(f"{at} {what} {tick}\n")
    made = Journal(folder)
    made.began.update(hits or {})
    return made


FIRST = ((A, 10, CLAIM, "t"), (A, 11, CALL, "t"))
SECOND = ((B, 50, CLAIM, "t"), (B, 51, CALL, "t"))


@pytest.mark.parametrize(
    ("between", "hits", "excused"),
    [
        ((), {}, 0),
        (((A, 20, DEATH, ""),), {}, 1),
        ((), {A: [30]}, 1),
        ((), {A: [5]}, 0),
        ((), {A: [60]}, 0),
        ((), {B: [30]}, 0),
        ((), {99: [30]}, 0),
    ],
)  # fmt: skip
def test_a_second_time_is_excused_by_a_crash_of_the_first_in_between_and_by_nothing_else(
    tmp_path: Path, between: tuple[tuple[int, int, str, str], ...], hits: dict[int, list[int]], excused: int
) -> None:
    made = journal(tmp_path, *FIRST, *between, *SECOND, hits=hits)
    for kind in (CLAIM, CALL):
        found = made.repeats(kind)
        assert (found.steps, len(found.excused), len(found.others)) == (2, excused, 1 - excused)


def test_one_that_was_frozen_between_its_claim_and_its_call_goes_on_when_it_thaws(tmp_path: Path) -> None:
    made = journal(tmp_path, (A, 10, CLAIM, "t"), *SECOND, (A, 70, CALL, "t"), hits={A: [20]})
    assert [len(pairs) for pairs in (made.repeats(CALL).excused, made.repeats(CALL).others)] == [1, 0]


def test_postgres_that_went_away_excuses_everybody(tmp_path: Path) -> None:
    made = journal(tmp_path, *FIRST, *SECOND)
    made.everybody.append(30)
    assert [len(pairs) for pairs in (made.repeats(CALL).excused, made.repeats(CALL).others)] == [1, 0]
    assert made.hits == 1
