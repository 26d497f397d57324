"""How probes look: bars that are in proportion, sparklines that show the longest gap, a live line that tells what goes on."""

import asyncio
from array import array

import click
import pytest

from app.cli.probing.live import CLEAR, Live
from app.cli.probing.render import SPARK, WIDTH, bar, outcome, sparkline, waterfall
from app.clock import FakeClock
from app.measurement.model import ErrorClass, Measurement, Outcome, Phases
from app.probe.tape import Tape


def drawn(start: float, share: float) -> str:
    return click.unstyle(bar(start, share))


def test_a_bar_begins_where_the_one_before_ended_and_is_in_proportion() -> None:
    assert drawn(0.0, 0.5) == "█" * (WIDTH // 2)
    assert drawn(0.5, 0.5) == " " * (WIDTH // 2) + "█" * (WIDTH // 2)


def test_the_shortest_phase_is_still_seen() -> None:
    assert drawn(0.0, 1e-9) == "▏"
    assert len(drawn(1.0, 0.0)) <= WIDTH


def test_a_sparkline_keeps_the_longest_gap_of_many() -> None:
    values = [0.01] * 1000
    values[777] = 1.0
    line = sparkline(values)
    assert len(line) <= SPARK
    assert line.count("█") == 1
    assert sparkline([0.0, 0.0]) == "▁▁"


def test_the_waterfall_has_only_phases_that_happened_and_none_without_time() -> None:
    m = Measurement(
        outcome=Outcome.OK,
        error_class=ErrorClass.NONE,
        phases=Phases(connect_s=0.1, send_s=0.0, wait_s=0.2),
        ttft_s=0.3,
        stream_end_s=0.6,
    )
    assert [line.split()[0] for line in waterfall(m)] == ["connect", "send", "first", "token", "stream"]
    assert list(waterfall(Measurement(outcome=Outcome.LOCAL_ERROR, error_class=ErrorClass.NONE))) == []


def test_an_outcome_says_its_class_where_that_says_more() -> None:
    told = [
        outcome(Measurement(outcome=o, error_class=e))
        for o, e in [
            (Outcome.OK, ErrorClass.NONE),
            (Outcome.TIMEOUT, ErrorClass.TIMEOUT),
            (Outcome.PROVIDER_ERROR, ErrorClass.RESET),
        ]
    ]
    assert [click.unstyle(each) for each in told] == ["ok", "timeout", "provider_error (reset)"]


def test_the_live_line_tells_what_goes_on_and_leaves_nothing_behind(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    live = Live(clock, wanted=True, prefix="1/2  ")
    assert live.words() == "starting"
    tape = Tape()
    live.watch(tape)
    clock.advance(0.25)
    assert live.words() == "connecting, 250 ms"
    tape.request_sent = 1
    assert live.words() == "waiting for the first byte, 250 ms"
    tape.stamps, tape.size = array("q", [1, 2]), 1500
    assert live.words() == "streaming, 250 ms, 2 reads, 1.5 kB"

    async def main() -> None:
        async with live.shown():
            await asyncio.sleep(0)

    asyncio.run(main())
    shown = capsys.readouterr().err
    assert "1/2  streaming" in shown
    assert shown.endswith(CLEAR)


def test_where_nobody_looks_no_line_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with Live(FakeClock(), wanted=False).shown():
            await asyncio.sleep(0)

    asyncio.run(main())
    assert capsys.readouterr().err == ""
