"""What a target should reach, from what it declares, from its model, and from its provider's host; asked once, then remembered."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.bootstrap.config import catalog_of
from app.bootstrap.judgement import Judgement
from app.catalog.load import load_catalog
from app.clock import FakeClock
from app.errors import ConfigError
from app.expectation.model import Basis, Confidence
from app.targets.model import Config, Deployment, Target
from app.verdict.findings import reference_of
from tests.support.runs import NOW, target

CONFIG = """
catalog: own.yaml
providers: {lab: {base_url: "http://10.0.0.1/v1"}}
targets: [{name: lab/a, provider: lab, model: a, every: 60s, deployment: {model_spec: gpt-oss-20b, hardware: LAB-X1, devices: 1}}]
"""
OWN = "hardware: [{id: LAB-X1, name: X1, vendor: Lab, class: dc-gpu, memory_GB: 96, bandwidth_GBps: 4000, confidence: medium}]"


def judgement() -> Judgement:
    return Judgement(
        catalog=load_catalog(), config=Config, clock=FakeClock(NOW), new_id=lambda: "id", base_url="http://bandwatch.example"
    )


def watched(model: str, *, url: str = "https://llm.example/v1", deployment: Deployment | None = None) -> Target:
    base = target("p/m")
    return replace(base, model=model, provider=replace(base.provider, base_url=url), deployment=deployment)


def test_a_declared_deployment_is_expected_to_the_point() -> None:
    found = judgement().expectation(watched("x", deployment=Deployment(model_spec="gpt-oss-120b", hardware="H200", devices=1)))
    assert found is not None
    assert (found.basis, found.hardware) == (Basis.DEPLOYMENT, "H200-SXM-141GB")


def test_a_deployment_without_a_model_takes_the_target_s() -> None:
    found = judgement().expectation(watched("openai/gpt-oss-120b:free", deployment=Deployment(hardware="H200", devices=1)))
    assert found is not None
    assert (found.model_spec, found.basis) == ("openai/gpt-oss-120b", Basis.DEPLOYMENT)


def test_an_undeclared_target_of_groq_is_judged_by_layers_as_a_range_that_flags() -> None:
    found = judgement().expectation(watched("openai/gpt-oss-120b", url="https://api.groq.com/openai/v1"))
    assert found is not None
    reference = reference_of(found)
    assert reference is not None
    assert (reference.basis, reference.flags, reference.ceiling) == (Basis.LAYER_LAW, True, None)
    assert reference.low < reference.high
    assert reference.ratio(500.0) is None
    assert reference.ratio(100.0) == pytest.approx(100.0 * 36 * 65e-6)


def test_an_undeclared_target_elsewhere_has_a_range_that_never_flags() -> None:
    found = judgement().expectation(watched("llama-3.3-70b"))
    assert found is not None
    reference = reference_of(found)
    assert reference is not None
    assert (found.basis, found.confidence, reference.flags) == (Basis.FEASIBLE_RANGE, Confidence.LOW, False)


@pytest.mark.parametrize("deployment", [None, Deployment(model_spec="nobody/knows"), Deployment(hardware="T4-16GB")])
def test_what_nobody_knows_has_no_expectation_and_is_asked_once(deployment: Deployment | None) -> None:
    asked = judgement()
    one = watched("gpt-5", deployment=deployment)
    assert asked.expectation(one) is None
    assert asked.expectation(one) is None
    assert len(asked._known) == 1


def test_the_service_s_catalogue_holds_the_rows_that_its_config_names(tmp_path: Path) -> None:
    (tmp_path / "bandwatch.yaml").write_text(CONFIG)
    (tmp_path / "own.yaml").write_text(OWN)
    assert catalog_of(tmp_path / "bandwatch.yaml").hardware_of("lab-x1").bandwidth == 4e12
    assert len(catalog_of(None).accelerators) == 98
    (tmp_path / "own.yaml").unlink()
    with pytest.raises(ConfigError, match=r"own\.yaml"):
        catalog_of(tmp_path / "bandwatch.yaml")
    (tmp_path / "bandwatch.yaml").write_text(CONFIG.replace("catalog: own.yaml", ""))
    assert len(catalog_of(tmp_path / "bandwatch.yaml").accelerators) == 98
