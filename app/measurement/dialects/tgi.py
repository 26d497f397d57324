"""Text Generation Inference: usage since version 3; versions 1 and 2 send `data:{` without a space, and no `[DONE]`."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="tgi")
