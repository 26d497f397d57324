"""Groq: usage in `x_groq`, in the finish chunk and in a chunk of its own; reasoning in `delta.reasoning`."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="groq", hosts=("api.groq.com",), length="max_completion_tokens")
