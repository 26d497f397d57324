"""Whatever way an error takes out of the program, it takes no secret with it, and it is told."""

import json
import subprocess
import sys

import pytest

from app.bootstrap.logs import describe_crash

CANARY = "Kanarienvogel0815"
SCRIPT = """
import asyncio, gc, logging, sys, threading, warnings
from app.bootstrap.logs import log_last_words, set_up_logs
from app.bootstrap.supervise import supervise
from app.clock import FakeClock
from app.secrets import Redactor
redactor = Redactor(["Kanarienvogel0815"])
set_up_logs(redactor, level="debug", style=sys.argv[2])
log_last_words()
def fail(*_):
    raise ValueError("Bearer Kanarienvogel0815 was refused")
class Doomed:
    def __del__(self):
        fail()
async def loop(stop):
    stop.set()
    fail()
async def main(way):
    stop = asyncio.Event()
    match way:
        case "loop": await supervise("worker", lambda: loop(stop), clock=FakeClock(), stop=stop)
        case "task":
            asyncio.get_running_loop().create_task(loop(stop))
            await asyncio.sleep(0)
            gc.collect()
        case "callback":
            asyncio.get_running_loop().call_soon(fail)
            await asyncio.sleep(0)
        case "log":
            try: fail()
            except ValueError: logging.getLogger("somebody.else").exception("it failed: %s", "Kanarienvogel0815")
        case "warning":
            logging.captureWarnings(True)
            warnings.warn("Kanarienvogel0815")
        case "thread":
            thread = threading.Thread(target=fail); thread.start(); thread.join()
        case "finalizer":
            Doomed(); gc.collect()
        case "crash": fail()
asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize("way", ["loop", "task", "callback", "log", "warning", "thread", "finalizer", "crash"])
def test_an_error_is_logged_without_the_secret_in_it(way: str, style: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, way, style], capture_output=True, text=True, timeout=60, check=False)
    told = done.stdout + done.stderr
    assert CANARY not in told
    assert "***" in told
    assert done.returncode == (1 if way == "crash" else 0)
    if style == "json":
        assert [json.loads(line) for line in done.stderr.splitlines()] != []


def test_a_crash_of_a_command_is_described_without_what_the_environment_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", CANARY)
    monkeypatch.setenv("BANDWATCH_DATABASE_URL", "postgresql://u:sesame%21open@h/db")
    error = RuntimeError(f"{CANARY} and sesame!open")
    assert describe_crash(error).strip() == "RuntimeError: *** and ***"
