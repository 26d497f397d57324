"""Targets that declare no deployment: what their model and their provider's host name tell, as a range with its provenance."""

from __future__ import annotations

from dataclasses import replace

from app.catalog.load import Catalog
from app.errors import NotFoundError, UsageError
from app.expectation.expect import expect
from app.expectation.machine import Workload
from app.expectation.model import Expectation
from app.targets.deployment import Deployment


def expect_undeclared(model: str, *, host: str, catalog: Catalog, workload: Workload | None = None) -> Expectation | None:
    """What a model at a host should reach; None where nobody knows the model.

    Providers whose machines are judged by layers get the range of their published rows; all others the range over every
    deployment that can hold the model, which is of low confidence and never flags.
    """
    try:
        known = catalog.model(model)
    except (NotFoundError, UsageError):
        return None
    provider = catalog.provider_of(host)
    hardware = None if provider is None else provider.hardware
    found = expect(Deployment(model_spec=known.id, hardware=hardware), catalog=catalog, workload=workload)
    told: tuple[str, ...] = (f"no deployment is declared: {model!r} is taken for {known.id}",)
    if provider is not None and hardware is not None:
        told = (*told, f"{provider.id} runs {hardware} ({provider.notes}; {provider.source})")
    return replace(
        found,
        expected_tps=None,
        red_below_tps=None,
        amber_below_tps=None,
        tuned_above_tps=None,
        memory_needed_bytes=None,
        assumptions=(*told, *found.assumptions),
    )
