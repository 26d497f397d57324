"""A kept recording comes back from the API as a file, and `bandwatch replay` makes the run's figures of it again."""

import json
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from app.cli.root import root
from app.measurement.evidence import encode
from app.measurement.measure import measure
from app.measurement.model import Measurement
from app.storage.documents import from_document
from app.storage.ledger import Ledger
from app.targets.model import Thresholds
from tests.support.doors import BIG, House, ago, in_house
from tests.support.recordings import recording
from tests.support.runs import decide, run
from tests.support.scenarios import BASE, CUT


def test_a_kept_recording_is_downloaded_and_replays_to_the_figures_of_its_run(dsn: str, tmp_path: Path) -> None:
    async def scenario(house: House) -> None:
        wanted = next(t for t in house.holder.current.targets if t.name == BIG)
        ledger = Ledger(database=house.database, clock=house.clock, thresholds=Thresholds)
        for seconds, writes in ((30, BASE), (20, CUT)):
            made = recording(writes)
            one = replace(run(ago(seconds=seconds), name=BIG, recording=encode(made)), measurement=measure(made).measurement)
            await ledger.record(one, target=wanted, decide=decide)
            async with house.caller() as client:
                answer = await client.get(f"/api/v1/runs/{one.id}/recording")
                shown = (await client.get(f"/api/v1/runs/{one.id}")).json()
            assert (answer.status_code, answer.headers["content-type"]) == (200, "application/gzip")
            assert answer.headers["content-disposition"] == f'attachment; filename="{one.id}.recording.gz"'
            assert shown["run"]["has_recording"] is True
            file = tmp_path / f"{one.id}.recording.gz"
            file.write_bytes(answer.content)
            compare(file, from_document(shown["measurement"], Measurement))

    in_house(dsn, scenario)


def compare(file: Path, measured: Measurement) -> None:
    for path in (file, file.parent):
        said = CliRunner().invoke(root, ["replay", str(path), "--json"], catch_exceptions=False)
        assert said.exit_code == 0
        found = next(each for each in json.loads(said.stdout) if each["file"] == str(file))
        assert (found["outcome"], found["output_tokens"]) == (measured.outcome, measured.output_tokens)
        assert (found["figures"]["ttft_s"], found["figures"]["decode_tps"]) == (measured.ttft_s, measured.decode_tps)
        assert found["figures"]["gaps"]["max_s"] == measured.gaps.max_s
    words = CliRunner().invoke(root, ["replay", str(file)]).stdout
    assert f"TTFT {(measured.ttft_s or 0) * 1000:.1f} ms" in words


def test_a_run_without_a_recording_says_that_none_is_kept(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            answer = await client.get("/api/v1/runs/nobody/recording")
        assert answer.status_code == 404
        assert "no recording of run 'nobody' is kept" in answer.json()["detail"]

    in_house(dsn, scenario)


def test_what_only_looks_like_a_recording_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.recording.gz").write_bytes(b"\x1f\x8bnonsense")
    said = CliRunner().invoke(root, ["replay", str(tmp_path)])
    assert said.exit_code != 0
    assert "not a kept recording" in str(said.exception or said.output)
