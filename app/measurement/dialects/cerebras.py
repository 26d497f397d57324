"""Cerebras: finish, usage and `time_info` in one last event, and no `[DONE]`."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="cerebras", hosts=("api.cerebras.ai",), length="max_completion_tokens")
