"""What docs/calibration.md claims, held on every run of the suite; and proof that the checks can fail."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.load import load_catalog
from benchmarks.calibration.checks import Evidence, checks, leviathan, upper_bound
from benchmarks.calibration.fits import fit, hold_out, quantile
from benchmarks.calibration.report import between, files
from benchmarks.calibration.rows import Judged, format_of, healthy

EVIDENCE = Evidence.read(load_catalog())
CHECKS = list(checks(EVIDENCE))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.claim)
def test_the_claim_holds(check: object) -> None:
    assert getattr(check, "holds", False), check


def test_the_committed_page_and_figures_are_those_that_validate_makes() -> None:
    stale = [path.name for path, text in files(EVIDENCE, CHECKS).items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run make validate"


def faster(row: Judged, factor: float) -> Judged:
    return replace(row, measured=row.measured * factor)


def failing(rows: list[Judged]) -> set[str]:
    return {check.claim.split(" (")[0] for check in checks(Evidence(catalog=EVIDENCE.catalog, rows=rows)) if not check.holds}


def test_a_plain_row_above_the_ceiling_fails_the_validation() -> None:
    rows = [faster(row, 20) if row.line == EVIDENCE.healthy[0].line else row for row in EVIDENCE.rows]
    assert {
        "single-stream rows without speculation above the ceiling",
        "rows that are impossible as declared, found impossible",
    } <= failing(rows)


def test_an_expectation_twice_too_high_fails_the_validation() -> None:
    assert {"false red flags on healthy rows", "healthy rows below half of expected"} <= failing(
        [faster(row, 0.5) for row in EVIDENCE.rows]
    )


def test_a_wrong_healthy_column_fails_the_validation() -> None:
    rows = [replace(row, raw={**row.raw, "healthy": "yes"}) for row in EVIDENCE.rows]
    assert "rows whose `healthy` column is not what the rule says" in failing(rows)


def test_the_healthy_rule_does_not_look_at_the_speed() -> None:
    assert [healthy(faster(row, 0.01)) for row in EVIDENCE.rows] == [healthy(row) for row in EVIDENCE.rows]


def test_a_fit_finds_the_constants_that_made_its_rows() -> None:
    rows = [row for row in EVIDENCE.dense_single if row.known.hardware.id == "RX-7900XT-20GB"]
    made = [
        replace(row, measured=1 / (row.known.step / (0.7 * row.known.hardware.bandwidth) + row.known.model.layers * 50e-6))
        for row in rows
    ]
    line = fit(made)
    assert (line.eta, line.tau) == (pytest.approx(0.7, rel=1e-6), pytest.approx(50e-6, rel=1e-6))
    assert hold_out(made, by="model", key=lambda row: row.raw["model_id"]).error < 1e-6


def test_the_sweeps_give_acceptance_and_cost_as_published() -> None:
    found = {fit.hardware: fit for fit in leviathan()}
    assert found["RTX 5090"].code == pytest.approx(0.885, abs=0.02)
    assert found["RTX 5090"].prose == pytest.approx(0.595, abs=0.03)
    assert found["RTX 5090"].cost == pytest.approx(0.145, abs=0.02)


def test_no_hit_in_296_leaves_one_percent_open() -> None:
    assert upper_bound(0, 296) == pytest.approx(1 - 0.05 ** (1 / 296), rel=1e-6)


def test_quantiles_lie_between_the_ranks() -> None:
    assert (quantile([1, 2, 3, 4], 0.5), quantile([5], 0.9), quantile([1, 3], 0.25)) == (2.5, 5, 1.5)


def test_a_page_without_markers_is_refused() -> None:
    assert between("a\n<!-- x -->\nold<!-- /x -->\nb", "x", "new\n") == "a\n<!-- x -->\nnew\n<!-- /x -->\nb"
    with pytest.raises(ValueError, match="markers of y"):
        between("a", "y", "new")


@pytest.mark.parametrize(
    ("said", "format_id"),
    [
        ("MXFP4+BF16", "MXFP4"),
        ("MXFP4+Q8_0", "MXFP4-GGUF"),
        ("AWQ g128", "AWQ"),
        ("UD-Q4_K_XL", "Q4_K_M"),
        ("GPTQ-Int8", "INT8-WO"),
    ],
)
def test_what_sources_call_a_format_is_understood(said: str, format_id: str) -> None:
    assert format_of(said) == format_id


def test_validate_is_a_target_of_make() -> None:
    assert "benchmarks.calibration" in (Path(__file__).parents[3] / "Makefile").read_text()
