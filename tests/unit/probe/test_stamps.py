"""Kernel stamps on the monotonic clock: exact, through preemption, and never fooled by a step of the wall clock."""

import socket
import struct
import sys
from dataclasses import dataclass

import pytest

from app.probe.stamps import ANCILLARY, TRIES, KernelClock, ask_for_stamps, keep_stamping

EPOCH = 1_790_000_000_000_000_000
MS = 1_000_000


@dataclass
class Clocks:
    """Both clocks of a machine; `stalls` are preemptions, each in front of the next reading of the wall clock."""

    mono: int = 5_000 * MS
    offset: int = EPOCH
    stalls: tuple[int, ...] = ()

    def monotonic(self) -> int:
        self.mono += 40
        return self.mono

    def wall(self) -> int:
        if self.stalls:
            self.mono += self.stalls[0]
            self.stalls = self.stalls[1:]
        return self.mono + self.offset

    def clock(self) -> KernelClock:
        return KernelClock(self.monotonic, self.wall)

    def arrived(self, ago: int) -> list[tuple[int, int, bytes]]:
        """The ancillary data of a segment that arrived `ago` nanoseconds ago."""
        return [(1, 35, struct.pack("qq", *divmod(self.mono + self.offset - ago, 1_000_000_000)))]


def test_a_stamp_is_the_instant_of_arrival_however_late_the_read() -> None:
    clocks = Clocks()
    at = clocks.mono - 7 * MS
    stamp, by_kernel = clocks.clock().stamp(clocks.arrived(7 * MS))
    assert by_kernel
    assert abs(stamp - at) < 100


def test_a_process_put_aside_between_two_readings_does_not_look_like_a_step() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    clock.stamp(clocks.arrived(MS))
    clocks.stalls = (30 * MS, 30 * MS)
    at = clocks.mono - MS
    stamp, by_kernel = clock.stamp(clocks.arrived(MS))
    assert by_kernel
    assert abs(stamp - at) < 1_000


def test_on_a_machine_that_never_lets_us_the_last_good_offset_holds() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    clock.stamp(clocks.arrived(MS))
    clocks.stalls = (MS,) * TRIES
    at = clocks.mono - MS
    stamp, by_kernel = clock.stamp(clocks.arrived(MS))
    assert by_kernel
    assert abs(stamp - at) < 1_000


def test_without_a_good_offset_there_is_no_kernel_stamp() -> None:
    clocks = Clocks(stalls=(MS,) * TRIES)
    assert clocks.clock().stamp(clocks.arrived(MS)) == (clocks.mono, False)


def test_a_step_of_the_wall_clock_costs_one_stamp_and_moves_none() -> None:
    for step in (-3_600_000 * MS, 10 * MS, 3_600_000 * MS):
        clocks = Clocks()
        clock = clocks.clock()
        clock.stamp(clocks.arrived(MS))
        before = clocks.arrived(MS)
        clocks.offset += step
        assert clock.stamp(before) == (clocks.mono, False), step
        at = clocks.mono - MS
        stamp, by_kernel = clock.stamp(clocks.arrived(MS))
        assert by_kernel
        assert abs(stamp - at) < 1_000


def test_a_read_that_the_kernel_did_not_stamp_has_the_time_of_the_read() -> None:
    clocks = Clocks()
    assert clocks.clock().stamp([]) == (clocks.mono, False)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux stamps what it receives")
def test_while_somebody_keeps_it_stamping_the_kernel_stamps_the_first_byte_of_a_connection() -> None:
    kept = keep_stamping()
    assert kept is not None
    with kept, socket.create_server(("127.0.0.1", 0)) as door:
        for _ in range(20):
            with socket.create_connection(door.getsockname()) as writer, door.accept()[0] as reader:
                assert ask_for_stamps(reader)
                writer.sendall(b"x")
                data, ancillary, _, _ = reader.recvmsg(10, ANCILLARY)
            assert (data, bool(ancillary)) == (b"x", True)
