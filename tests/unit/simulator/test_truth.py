"""A diagnosis finds the truth behind drawn providers: the benchmark's figures on a small seeded sample."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from app.catalog.load import load_catalog

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def truth() -> ModuleType:
    return script("diagnosis_truth")


def test_the_true_machine_is_among_those_that_explain_its_speed(truth: ModuleType) -> None:
    pytest.importorskip("app.expectation.feasible")
    shares = truth.explained(40, seed=79_000, catalog=load_catalog())
    assert sum(share.of for share in shares.values()) == 40
    assert sum(share.hits for share in shares.values()) >= 0.95 * 40


def test_healthy_targets_open_no_red_incident_in_a_hundred_days() -> None:
    days = script("healthy_days")
    opened = days.healthy_days(100, seed=7, catalog=load_catalog())
    assert [rule for rule, severity in opened if severity == "critical"] == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_healthy_targets_open_no_red_incident_in_3000_days() -> None:
    days = script("healthy_days")
    opened = days.healthy_days(3000, seed=1, catalog=load_catalog())
    assert [rule for rule, severity in opened if severity == "critical"] == []


def test_speculation_and_caches_are_found_and_none_where_there_are_none(truth: ModuleType) -> None:
    shares = truth.found(40, seed=77_000, catalog=load_catalog())
    assert shares["speculation found"].value >= 0.9
    assert shares["speculation falsely"].hits == 0
    assert shares["cache found"].value >= 0.85
    assert shares["cache falsely"].hits <= 1


def test_the_planted_trouble_is_ranked_first(truth: ModuleType) -> None:
    shares, mistaken = truth.ranked(42, seed=78_000, catalog=load_catalog())
    planted = [share for name, share in shares.items() if name != "nothing"]
    assert sum(share.of for share in planted) == 36
    assert sum(share.hits for share in planted) >= 0.85 * 36, mistaken
    assert shares["nothing"].hits >= 5
