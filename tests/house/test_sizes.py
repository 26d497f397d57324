"""Small things: a file that grows too long holds two things that want names."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES_OF_A_FILE = 300
LINES_OF_A_FUNCTION = 70
"""Without its docstring; the median is under 10."""
NAMELESS = {"utils", "helpers", "common", "manager", "service_layer", "misc"}


def sources() -> list[Path]:
    return sorted((ROOT / "app").rglob("*.py"))


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            documented = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) else 0
            yield node.name, (node.end_lineno or 0) - node.lineno + 1 - documented


def test_no_file_of_the_program_is_longer_than_300_lines() -> None:
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources()}
    assert {name: lines for name, lines in long.items() if lines > LINES_OF_A_FILE} == {}


def test_no_function_of_the_program_is_longer_than_70_lines() -> None:
    long = [
        (str(path.relative_to(ROOT)), name, lines)
        for path in sources()
        for name, lines in functions(ast.parse(path.read_text()))
        if lines > LINES_OF_A_FUNCTION
    ]
    assert long == []


def test_no_module_is_named_after_nothing() -> None:
    assert [str(path) for path in sources() if path.stem in NAMELESS] == []
