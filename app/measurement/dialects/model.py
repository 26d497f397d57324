"""A dialect: what one kind of endpoint accepts in a request. Reading needs none: every known answer is read by one reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.targets.model import Recipe

Body = dict[str, Any]


def _as_it_is(body: Body) -> Body:
    return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One kind of endpoint.

    `hosts`: ends of host names that speak it. `length`: the field that bounds the output. `pins`: sent besides to get
    exactly that many tokens. `usage`: ask for usage in the stream. `adapt`: the last word over a request body.
    """

    name: str
    hosts: tuple[str, ...] = ()
    path: str = "/chat/completions"
    auth: Literal["bearer", "api-key"] = "bearer"
    length: str = "max_tokens"
    usage: bool = True
    temperature: bool = True
    pins: Mapping[str, Any] = field(default_factory=dict)
    adapt: Callable[[Body], Body] = _as_it_is


def request_body(dialect: Dialect, *, model: str, recipe: Recipe, prompt: str, without: frozenset[str] = frozenset()) -> Body:
    """The body of one probe.

    Args:
        dialect: what the endpoint accepts.
        model: its id there.
        recipe: output length and temperature.
        prompt: the whole text, nonce first.
        without: parameters that this endpoint has refused before. A refused `max_tokens` becomes `max_completion_tokens`.
    """
    length = dialect.length
    if length in without:
        length = "max_completion_tokens" if length == "max_tokens" else "max_tokens"
    body: Body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "stream": True,
        length: recipe.output_tokens,
    }
    if dialect.temperature:
        body["temperature"] = recipe.temperature
    if dialect.usage:
        body["stream_options"] = {"include_usage": True}
    body |= {name: recipe.output_tokens if value == "length" else value for name, value in dialect.pins.items()}
    body = dialect.adapt(body)
    return {name: value for name, value in body.items() if name not in without or name == length}


DROPPABLE = ("stream_options", "max_tokens", "max_completion_tokens", "temperature", "ignore_eos", "min_tokens")
"""Parameters that a refused call is repeated without, once."""
