"""Figures on their way out: entries 69 to 72, and a proof that no entry is without its test."""

import ast
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from app.measurement.model import ErrorClass, Measurement, Outcome, Reliable
from app.measurement.totals import EDGES, TTFT_EDGES_S, Totals, advance_totals
from app.targets.model import Deadlines
from tests.support.runs import run

FIRST, LAST = 1, 72


def ok(ttft_s: float) -> Measurement:
    return Measurement(
        outcome=Outcome.OK, error_class=ErrorClass.NONE, ttft_s=ttft_s, total_s=ttft_s, reliable=Reliable(ttft=True)
    )


def totals_of(*values: float) -> Totals:
    totals = Totals()
    for value in values:
        totals = advance_totals(totals, replace(run(), measurement=ok(value)))
    return totals


def test_69_the_highest_edge_lies_beyond_every_deadline() -> None:
    deadlines = Deadlines()
    assert max(EDGES["ttft"]) >= deadlines.first_token_s
    assert max(EDGES["duration"]) >= deadlines.total_s
    assert all(max(EDGES[name]) >= deadlines.connect_s for name in EDGES if name.startswith("phase:"))
    counts = totals_of(*[50.0] * 30).histograms["ttft"].counts
    assert (sum(counts), counts[-1]) == (30, 0)


def test_70_edges_are_close_where_the_data_lives() -> None:
    steps = [b / a for a, b in pairwise(TTFT_EDGES_S)]
    assert (TTFT_EDGES_S[0], max(steps) <= 2.5) == (0.02, True)
    for low, high in ((0.15, 0.25), (0.45, 0.55), (0.003, 0.03)):
        histogram = totals_of(low, high).histograms["ttft"]
        assert max(histogram.counts) == 1


def test_71_figures_that_are_compared_share_one_grid() -> None:
    phases = {EDGES[name] for name in EDGES if name.startswith("phase:")}
    assert len(phases) == 1
    assert all(list(edges) == sorted(set(edges)) for edges in EDGES.values())


def test_72_a_rare_probe_keeps_its_last_value_and_its_count() -> None:
    once = totals_of(0.2)
    assert (once.outcomes, once.last_run_at is not None, once.last_success_at is not None) == ({Outcome.OK: 1}, True, True)
    assert (sum(once.histograms["ttft"].counts), once.histograms["ttft"].total) == (1, 0.2)


def test_every_numbered_entry_has_its_test() -> None:
    found: list[int] = []
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and (number := re.match(r"test_(\d\d)_", node.name)):
                assert any(isinstance(each, ast.Assert) for each in ast.walk(node))
                found.append(int(number.group(1)))
    assert sorted(found) == list(range(FIRST, LAST + 1))
