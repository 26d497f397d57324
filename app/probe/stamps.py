"""The kernel's receive stamps: when a segment arrived, however late anybody looks.

The kernel stamps with the wall clock; figures need the monotonic one. Both clocks are read when the read is made, so the
stamp's age is known, and a step of the wall clock in between shows as an age that cannot be: that read gets the time at
which it was made instead. The two clocks are read as a tight pair: on a busy machine a process may be put aside between the
two readings, and that must not look like a step.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence

SO_TIMESTAMPNS = 35
"""`SO_TIMESTAMPNS_OLD` of asm-generic/socket.h: a timespec of two longs on 64-bit Linux."""
ANCILLARY = 64
MAX_AGE_NS = 60_000_000_000
STEP_NS = 2_000_000
TIGHT_NS = 50_000
"""How far apart the two readings around a wall-clock reading may be; a pair takes 0.1 us on an idle core."""
TRIES = 5
ROUNDING_NS = 1_000
"""By how much a stamp may seem to come from the future, for the instants between two readings."""
_TIMESPEC = struct.Struct("qq")


class KernelClock:
    """Turns the kernel's wall-clock stamps into monotonic ones."""

    __slots__ = ("_monotonic", "_offset", "_wall")

    def __init__(self, monotonic: Callable[[], int] = time.monotonic_ns, wall: Callable[[], int] = time.time_ns) -> None:
        self._monotonic, self._wall = monotonic, wall
        self._offset: int | None = None

    def stamp(self, ancillary: Sequence[tuple[int, int, bytes]]) -> tuple[int, bool]:
        """(monotonic ns, by the kernel?) of a read that was just made."""
        if not ancillary:
            return self._monotonic(), False
        before, wall, now = self._monotonic(), self._wall(), self._monotonic()
        known = self._offset
        if now - before > TIGHT_NS:
            now, wall, tight = self._again()
            if not tight:
                if known is None:
                    return now, False
                wall = now + known
        self._offset = offset = wall - now
        seconds, nanoseconds = _TIMESPEC.unpack_from(ancillary[0][2])
        age = wall - (seconds * 1_000_000_000 + nanoseconds)
        if known is not None and not -STEP_NS <= offset - known <= STEP_NS:
            return now, False  # the wall clock was set
        if age <= 0:
            return now, age >= -ROUNDING_NS
        return (now - age, True) if age <= MAX_AGE_NS else (now, False)

    def _again(self) -> tuple[int, int, bool]:
        """(monotonic, wall, tight?) read together; looser than `TIGHT_NS` only if the machine never lets us."""
        for _ in range(TRIES - 1):
            before, wall, after = self._monotonic(), self._wall(), self._monotonic()
            if after - before <= TIGHT_NS:
                return after, wall, True
        return after, wall, False


def ask_for_stamps(sock: socket.socket) -> bool:
    """Ask the kernel to stamp what arrives; False where it cannot."""
    if not sys.platform.startswith("linux") or struct.calcsize("P") != 8 or not hasattr(sock, "recvmsg"):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def keep_stamping(
    *, tries: int = 100, pause_s: float = 0.005, pause: Callable[[float], None] = time.sleep
) -> socket.socket | None:
    """A connection to ourselves that keeps the kernel stamping while it is open; None where it cannot stamp.

    Linux stamps only while some socket wants it, and begins a moment after the first one asks (it patches its own code, on a
    work queue), so that the first reads of a lonely probe would have no stamps. Returns once stamps come, at the latest
    after `tries` pauses. The caller closes it.
    """
    with socket.create_server(("127.0.0.1", 0)) as door, socket.create_connection(door.getsockname()) as writer:
        reader, _ = door.accept()
        if not ask_for_stamps(reader):
            reader.close()
            return None
        for _ in range(tries):
            writer.sendall(b".")
            if reader.recvmsg(1, ANCILLARY)[1]:
                break
            pause(pause_s)
        return reader
