"""SambaNova: nearly the whole answer in one chunk; usage only when asked for."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="sambanova", hosts=("api.sambanova.ai",))
