"""Become another user if told to, promise to end with the parent, and become the program.

Run as a file of its own: `python -I -S launch.py PARENT USER GROUP PROGRAM ARGUMENTS…`, with -1 to stay who we are. It is a
program and not a `preexec_fn`, since code between fork and exec can deadlock in a process with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when its parent dies; kept over execve, cleared by setuid."""


def main(arguments: list[str]) -> None:
    """Never returns: becomes the program, or exits with 1 when the parent is gone already."""
    parent, user, group = (int(text) for text in arguments[:3])
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if user >= 0:
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    if libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)  # to Postgres: stop fast
    if os.getppid() != parent:
        os._exit(1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and a program would inherit that
    os.execv(arguments[3], arguments[3:])  # noqa: S606 - our own arguments, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
