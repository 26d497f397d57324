"""Write the table of dialects into docs/dialects.md, from the dialects themselves: `python docs/make/dialects.py`."""  # noqa: INP001

from __future__ import annotations

import importlib
import re
from pathlib import Path

from app.measurement.dialects import Dialect, dialects, request_body
from app.targets.recipes import BUILTIN

PAGE = Path(__file__).parents[1] / "dialects.md"
BEGIN, END = "<!-- table -->", "<!-- /table -->"
HEADER = "| dialect | told by the host | length | what else is sent | |\n| --- | --- | --- | --- | --- |"
PLAIN = {"model", "messages", "stream", "max_tokens", "max_completion_tokens"}


def table() -> str:
    """One row a dialect, in order of their names."""
    return "\n".join([HEADER, *(row(dialect) for _, dialect in sorted(dialects().items()))])


def row(dialect: Dialect) -> str:
    """What one dialect sends, and what is special about it."""
    body = request_body(dialect, model="m", recipe=BUILTIN["chat-short"], prompt="p")
    length = f"`{dialect.length}`" if dialect.length in body else "`options.num_predict`"
    besides = ", ".join(f"`{name}: {short(value)}`" for name, value in body.items() if name not in PLAIN)
    hosts = ", ".join(f"`{host}`" for host in dialect.hosts)
    module = importlib.import_module(f"app.measurement.dialects.{dialect.name.replace('-', '_')}")
    about = (module.__doc__ or "").split("\n")[0]
    return f"| `{dialect.name}` | {hosts} | {length} | {besides} | {about} |"


def short(value: object) -> str:
    """A value as JSON has it, without quotes."""
    return re.sub(r"'(\w+)'", r"\1", str(value)).replace("True", "true").replace("False", "false")


def page(text: str) -> str:
    """The page with the present table."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
