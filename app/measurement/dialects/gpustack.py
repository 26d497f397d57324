"""GPUStack (llama-box): no `[DONE]`, an `error:` field, its own TTFT inside usage."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="gpustack", pins={"ignore_eos": True})
