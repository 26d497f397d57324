"""OpenAI: reasoning models take neither `max_tokens` nor a temperature; padding is switched off."""

from __future__ import annotations

from app.measurement.dialects.model import Body, Dialect


def _without_padding(body: Body) -> Body:
    """No random padding in each chunk."""
    return {**body, "stream_options": {"include_usage": True, "include_obfuscation": False}}


DIALECT = Dialect(
    name="openai", hosts=("api.openai.com",), length="max_completion_tokens", temperature=False, adapt=_without_padding
)
