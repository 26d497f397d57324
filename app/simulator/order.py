"""A chat completion as it was ordered: the request body, checked."""

from __future__ import annotations

import json
from dataclasses import dataclass

from app.errors import UsageError

MOST_TOKENS = 8192
NATURAL_TOKENS = (300, 700)
"""Where an answer ends by itself, drawn uniformly, unless `ignore_eos` forbids it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the client wants. `most`: the bound on output tokens; `exact`: go on to the bound (`ignore_eos`)."""

    model: str
    prompt: str
    stream: bool = False
    usage: bool = False
    most: int = MOST_TOKENS
    exact: bool = False


def parse_order(raw: bytes) -> Order:
    """The order in a request body.

    Raises:
        UsageError: saying what is wrong with it.
    """
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise UsageError("model is required")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise UsageError("messages must be a list of messages")
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise UsageError("max_tokens and max_completion_tokens exclude each other")
    most = body.get("max_tokens", body.get("max_completion_tokens", MOST_TOKENS))
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MOST_TOKENS:
        raise UsageError(f"max_tokens must be a whole number from 1 to {MOST_TOKENS}")
    options = body.get("stream_options") or {}
    return Order(
        model=body["model"],
        prompt="\n".join(_text(m.get("content")) for m in messages),
        stream=body.get("stream") is True,
        usage=isinstance(options, dict) and options.get("include_usage") is True,
        most=most,
        exact=body.get("ignore_eos") is True,
    )


def _text(content: object) -> str:
    """A message's text, whether written as a string or as parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
