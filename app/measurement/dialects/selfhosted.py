"""A host of one's own, most often vLLM, SGLang or llama.cpp: all take `ignore_eos`, and others ignore it."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="selfhosted", pins={"ignore_eos": True})
