"""The spool: whole files or none, oldest first, bounded, and never in anybody's way."""

from datetime import timedelta
from pathlib import Path

from app.dispatch.spool import Spool
from tests.support.runs import NOW, run


def test_runs_come_back_as_they_were_oldest_first(tmp_path: Path) -> None:
    spool = Spool(directory=tmp_path / "spool")
    newer, older = run(NOW + timedelta(seconds=5), recording=b"\x00\xff"), run(NOW)
    assert spool.put(newer)
    assert spool.put(older)
    assert [each for _, each in spool.waiting()] == [older, newer]


def test_a_stored_run_is_forgotten(tmp_path: Path) -> None:
    spool = Spool(directory=tmp_path)
    spool.put(run())
    for path, _ in spool.waiting():
        spool.done(path)
        spool.done(path)
    assert list(spool.waiting()) == []


def test_nothing_waits_where_nothing_was_ever_spooled(tmp_path: Path) -> None:
    assert list(Spool(directory=tmp_path / "never").waiting()) == []


def test_a_full_spool_refuses_and_keeps_what_it_has(tmp_path: Path) -> None:
    spool = Spool(directory=tmp_path, limit=2)
    assert [spool.put(run(NOW + timedelta(seconds=n))) for n in range(3)] == [True, True, False]
    assert len(list(spool.waiting())) == 2


def test_a_disk_that_refuses_is_an_answer_not_an_exception(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert not Spool(directory=tmp_path / "file" / "spool").put(run())


def test_a_damaged_file_is_set_aside_and_the_others_come(tmp_path: Path) -> None:
    spool = Spool(directory=tmp_path)
    spool.put(run())
    (tmp_path / "0-damaged.json").write_bytes(b'{"id": ')
    assert len(list(spool.waiting())) == 1
    assert (tmp_path / "0-damaged.bad").exists()
