"""A diagnosis finds the truth behind drawn providers: the benchmark's figures on a small seeded sample."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from app.catalog.load import load_catalog

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "diagnosis_truth.py"


@pytest.fixture(scope="module")
def truth() -> ModuleType:
    spec = importlib.util.spec_from_file_location("diagnosis_truth", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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
