"""SGLang: pins the output length exactly."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="sglang", pins={"ignore_eos": True, "min_tokens": "length"})
