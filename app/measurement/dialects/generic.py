"""Any OpenAI-compatible endpoint that nobody has described."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="generic")
