"""vLLM: pins the output length exactly."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="vllm", pins={"ignore_eos": True, "min_tokens": "length"})
