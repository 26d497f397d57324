"""Ollama's OpenAI-compatible API."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(name="ollama", hosts=("ollama.com",))
