"""Mistral: usage always comes in the finish chunk, and `stream_options` was refused by older versions."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="mistral", hosts=("api.mistral.ai",), usage=False)
