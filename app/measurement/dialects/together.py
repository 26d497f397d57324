"""Together."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="together", hosts=("api.together.xyz", "api.together.ai"))
