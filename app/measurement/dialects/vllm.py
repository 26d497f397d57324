"""vLLM: pins the output length exactly, and says with each chunk how many tokens there are so far."""

from __future__ import annotations

from app.measurement.dialects.model import Body, Dialect


def _count_each_chunk(body: Body) -> Body:
    """Usage on every chunk: under speculation a chunk holds several tokens, and only the server knows how many."""
    return {**body, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}


DIALECT = Dialect(name="vllm", pins={"ignore_eos": True, "min_tokens": "length"}, adapt=_count_each_chunk)
