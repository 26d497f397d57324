"""The kernel's receive stamps: when a segment arrived, however late anybody looks.

The kernel stamps with the wall clock; figures need the monotonic one. Both clocks are read when the read is made, so the
stamp's age is known, and a step of the wall clock in between shows as an age that cannot be: that read gets the time at
which it was made instead.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Sequence

SO_TIMESTAMPNS = 35
"""`SO_TIMESTAMPNS_OLD` of asm-generic/socket.h: a timespec of two longs on 64-bit Linux."""
ANCILLARY = 64
MAX_AGE_NS = 60_000_000_000
STEP_NS = 2_000_000
_TIMESPEC = struct.Struct("qq")


class KernelClock:
    """Turns the kernel's wall-clock stamps into monotonic ones."""

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset: int | None = None

    def stamp(self, ancillary: Sequence[tuple[int, int, bytes]]) -> tuple[int, bool]:
        """(monotonic ns, by the kernel?) of a read that was just made."""
        now = time.monotonic_ns()
        if not ancillary:
            return now, False
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        offset = wall - now
        stepped = self._offset is not None and abs(offset - self._offset) > STEP_NS
        self._offset = offset
        seconds, nanoseconds = _TIMESPEC.unpack_from(ancillary[0][2])
        age = wall - (seconds * 1_000_000_000 + nanoseconds)
        if stepped or not -1_000 <= age <= MAX_AGE_NS:
            return now, False
        return now - max(0, age), True


def ask_for_stamps(sock: socket.socket) -> bool:
    """Ask the kernel to stamp what arrives; False where it cannot."""
    if not sys.platform.startswith("linux") or struct.calcsize("P") != 8 or not hasattr(sock, "recvmsg"):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True
