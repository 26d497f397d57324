"""Fireworks: server times in headers and, when asked, in the last chunk."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="fireworks", hosts=("api.fireworks.ai",), pins={"perf_metrics_in_response": True})
