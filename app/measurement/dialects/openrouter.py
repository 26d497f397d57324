"""OpenRouter: one upstream only, else two runs are not comparable."""

from __future__ import annotations

from app.measurement.dialects.model import Body, Dialect


def _pin_upstream(body: Body) -> Body:
    """No silent change of the upstream within a run; which upstream is the config's choice (`model: name:provider`)."""
    return {**body, "provider": {"allow_fallbacks": False}}


DIALECT = Dialect(name="openrouter", hosts=("openrouter.ai",), adapt=_pin_upstream)
