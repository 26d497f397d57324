"""A child never outlives its parent, and drains when it is told to stop."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from app.bootstrap.child import Child

WAITER = """
import asyncio, sys
from app.bootstrap.child import parent_gone
print("up", flush=True)
asyncio.run(parent_gone())
open(sys.argv[1], "w").write("parent gone")
"""
PARENT = """
import asyncio, sys
from app.bootstrap.child import Child
asyncio.run(Child(name="c", arguments=["-c", sys.argv[1], sys.argv[2]], environment={}).run())
"""


def test_a_child_notices_that_its_parent_was_killed(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, WAITER, str(witness)], stdout=subprocess.PIPE, cwd=Path.cwd())
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"up\n"
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while not (witness.exists() and witness.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert witness.read_text() == "parent gone"


def test_cancelling_stops_the_child_by_sigterm() -> None:
    async def scenario() -> int:
        child = Child(name="c", arguments=["-c", "import time; time.sleep(60)"], environment={}, grace_s=5.0)
        task = asyncio.create_task(child.run())
        while child.pid is None:
            await asyncio.sleep(0.01)
        pid = child.pid
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return pid

    pid = asyncio.run(scenario())
    try:
        os.kill(pid, 0)
        alive = True
    except ProcessLookupError:
        alive = False
    assert not alive
