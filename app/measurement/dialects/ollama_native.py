"""Ollama's own API: NDJSON, and options in a place of their own."""

from __future__ import annotations

from app.measurement.dialects.model import Body, Dialect


def _options(body: Body) -> Body:
    """Output length and temperature belong into `options`."""
    options = {"num_predict": body.pop("num_predict"), "temperature": body.pop("temperature")}
    return {**body, "options": options}


DIALECT = Dialect(name="ollama-native", length="num_predict", path="/api/chat", usage=False, adapt=_options)
