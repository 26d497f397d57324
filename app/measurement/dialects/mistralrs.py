"""mistral.rs: prompt and completion times inside usage."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="mistralrs")
