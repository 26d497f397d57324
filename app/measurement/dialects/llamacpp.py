"""llama.cpp's server; `cache_prompt` off, so that a nonce is not needed to miss the slot's own cache."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="llamacpp", pins={"ignore_eos": True, "cache_prompt": False})
