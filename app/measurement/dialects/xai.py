"""xAI: usage leaves reasoning tokens out; the total tells."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="xai", hosts=("api.x.ai",), length="max_completion_tokens")
