"""Text Generation Inference: older ones refuse `stream_options`."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="tgi", usage=False)
