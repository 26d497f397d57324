"""Ollama's own API: NDJSON, and options in a place of their own."""

from __future__ import annotations

from app.measurement.dialects.model import Body, Dialect


def _options(body: Body) -> Body:
    """Output length and temperature belong into `options`."""
    length = body.pop("max_tokens", None)
    return {**body, "options": {"num_predict": length, "temperature": body.pop("temperature", 0.0)}}


DIALECT = Dialect(name="ollama-native", path="/api/chat", usage=False, adapt=_options)
