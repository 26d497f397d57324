"""DeepSeek: keep-alive comments while queued; a disk cache of prompts, hence the nonce."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="deepseek", hosts=("api.deepseek.com",))
