"""Time is an argument: only its home and the edges that say why read a clock, and nobody sleeps a thread."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BANNED = {"datetime.now", "datetime.utcnow", "time.time", "time.sleep", "asyncio.wait_for", "random.random", "random.choice"}
EXEMPT = {
    ("app/clock.py", "datetime.now"): "the home of the wall clock",
    ("app/cli/replay.py", "datetime.now"): "a command is an edge; a replayed body has no time of its own",
    ("app/simulator/server.py", "time.time"): "the simulator's edge, for the field `created`",
}


def calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            yield f"{node.func.value.id}.{node.func.attr}"


def test_time_and_chance_are_arguments() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted((ROOT / "app").rglob("*.py"))
        for name in calls(path)
        if name in BANNED
    }
    assert found == set(EXEMPT)
