"""Azure OpenAI: the key goes in a header of its own."""

from __future__ import annotations

from app.measurement.dialects.model import Dialect

DIALECT = Dialect(
    name="azure",
    hosts=("openai.azure.com", "services.ai.azure.com"),
    auth="api-key",
    length="max_completion_tokens",
    temperature=False,
)
