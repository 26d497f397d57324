"""A task that nobody holds may be collected while it runs: every task belongs to a group or to a name."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
STARTS = {"create_task", "ensure_future"}


def dropped(tree: ast.AST) -> Iterator[int]:
    """Lines where a task is started and its result thrown away, unless a task group holds it."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="group"), attr="create_task"))):
                pass
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))) if name in STARTS:
                yield node.lineno
            case _:
                pass


def test_no_task_is_started_and_forgotten() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "app").rglob("*.py"))
        for line in dropped(ast.parse(path.read_text()))
    ]
    assert found == []


def test_the_rule_finds_what_it_forbids_and_leaves_groups_alone() -> None:
    code = "asyncio.create_task(f())\nloop.create_task(f())\nensure_future(f())\ngroup.create_task(f())\nt = create_task(f())"
    assert list(dropped(ast.parse(code))) == [1, 2, 3]
