"""Who stamped a recording is said as it is: one read without the kernel's stamp takes nothing from the others."""

import pytest

from app.measurement.recording import StampSource
from app.probe.exchange import _source
from app.probe.tape import Tape


@pytest.mark.parametrize(
    ("by_kernel", "source"),
    [
        ([], StampSource.NONE),
        ([True, True], StampSource.KERNEL),
        ([False, False], StampSource.LOOP),
        ([True, False, True], StampSource.MIXED),
    ],
)
def test_a_recording_says_who_stamped_its_reads(by_kernel: list[bool], source: StampSource) -> None:
    tape = Tape()
    for stamp, kernel in enumerate(by_kernel):
        tape.take(stamp, b"x", kernel=kernel)
    assert _source(tape) is source
