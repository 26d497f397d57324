"""The tables of docs/calibration.md, each between its markers; the prose around them is written by hand."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from app.expectation.laws import expected_s
from benchmarks.calibration.checks import Check, Evidence, leviathan
from benchmarks.calibration.fits import fit, quantile
from benchmarks.calibration.plots import measured_against_expected, ratio_by_class
from benchmarks.calibration.rows import Judged

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "calibration.md"
NAMED = {
    "vLLM 0.6.3": "vllm-0.6",
    "gpt-fast": "gpt-fast",
    "lmdeploy": "lmdeploy",
    "MLX": "mlx",
    "llama.cpp CUDA": "llama.cpp",
    "llama.cpp Metal": "llama.cpp-metal",
    "llama.cpp ROCm/Vulkan": "llama.cpp-rocm",
    "exllamav2, MLC": "exllamav2",
}
"""Our word for a stack -> the product's."""


def groups(evidence: Evidence) -> list[tuple[str, list[Judged]]]:
    """Healthy rows by what shares a latency per layer; groups of fewer than three are put together."""
    found: defaultdict[str, list[Judged]] = defaultdict(list)
    for row in evidence.healthy:
        dense_stack = f"{row.stack}{'' if row.known.lanes == 1 else ', tensor parallel'}"
        found[row.shape if row.known.model.experts else dense_stack].append(row)
    small = [name for name, rows in found.items() if len(rows) < 3]
    rest = [row for name in small for row in found.pop(name)]
    return sorted(found.items(), key=lambda item: -len(item[1])) + ([("others", rest)] if rest else [])


def files(evidence: Evidence, checks: Sequence[Check]) -> dict[Path, str]:
    """Everything that `make validate` writes."""
    tables = {
        "checks": checks_table(checks),
        "stacks": stacks_table(evidence),
        "sweeps": sweeps_table(),
    }
    page = PAGE.read_text(encoding="utf-8")
    for name, table in tables.items():
        page = between(page, name, table)
    by_class = [*groups(evidence), ("speculation declared", [r for r in evidence.bytes_rule if r.raw["speculative"] == "yes"])]
    return {
        PAGE: page,
        DOCS / "images" / "calibration-measured.svg": measured_against_expected(evidence),
        DOCS / "images" / "calibration-classes.svg": ratio_by_class(by_class),
    }


def between(page: str, name: str, table: str) -> str:
    """The page with what stands between the markers of `name` replaced.

    Raises:
        ValueError: the page has no such markers.
    """
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if pattern.search(page) is None:
        raise ValueError(f"docs/calibration.md lacks the markers of {name}")
    return pattern.sub(lambda found: f"{found[1]}{table}{found[2]}", page)


def checks_table(checks: Iterable[Check]) -> str:
    lines = ["| claim | found | must be | holds |", "| --- | --- | --- | --- |"]
    lines += [f"| {c.claim} | {c.found} | {c.bound} | {'yes' if c.holds else '**no**'} |" for c in checks]
    return "\n".join(lines) + "\n"


def stacks_table(evidence: Evidence) -> str:
    titles = (
        "class",
        "rows",
        "eta fitted",
        "tau fitted, µs",
        "residual",
        "of ceiling p10 / p50 / max",
        "R p5 / p50 / p95",
        "R under 0.6",
        "R with the stack named",
    )
    lines = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    lines += [_stack_line(name, rows) for name, rows in groups(evidence)]
    lines.append(_stack_line("**all healthy**", evidence.healthy))
    return "\n".join(lines) + "\n"


def _stack_line(name: str, rows: Sequence[Judged]) -> str:
    line = fit(rows)
    shares = [row.of_ceiling for row in rows]
    default, named = [row.ratio for row in rows], list(_with_stack(rows))
    amber = sum(ratio < 0.6 for ratio in default)
    cells = (
        name,
        str(len(rows)),
        *((f"{line.eta:.2f}", f"{line.tau * 1e6:.0f}", f"{line.residual:.0%}") if len(rows) >= 4 else ("-", "-", "-")),
        f"{quantile(shares, 0.1):.2f} / {quantile(shares, 0.5):.2f} / {max(shares):.2f}",
        _three(default),
        str(amber),
        _three(named),
    )
    return f"| {' | '.join(cells)} |"


def _with_stack(rows: Sequence[Judged]) -> Iterator[float]:
    for row in rows:
        yield row.measured * expected_s(replace(row.known, stack=NAMED.get(row.stack)))


def _three(values: Sequence[float]) -> str:
    return " / ".join(f"{quantile(values, p):.2f}" for p in (0.05, 0.5, 0.95))


def sweeps_table() -> str:
    lines = [
        "| machine | draft lengths | acceptance, code | acceptance, prose | draft cost | rms of log speed-up |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {f.hardware} | {f.n} | {f.code:.2f} | {f.prose:.2f} | {f.cost:.3f} | {f.rms:.3f} |" for f in leviathan()]
    return "\n".join(lines) + "\n"
