"""The streams that today's tools misread, as scripts of writes: what a server sends when, and how it must be read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


def data(value: Any) -> bytes:
    return f"data: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}\n\n".encode()


def chunk(*, usage: Any = "absent", **delta: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return made if usage == "absent" else {**made, "usage": usage}


def fin(**more: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **more}


def usage(n: int | None, **more: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [], "usage": {"completion_tokens": n, "prompt_tokens": 10, **more}}


ROLE = (50, data(chunk(role="assistant", content="")))
TEXT = "abcdefghijklmnopqrst"
PLAIN = [(200 + 20 * n, data(chunk(content=c))) for n, c in enumerate(TEXT)]
END = [(600, data(fin())), (680, data(usage(20)) + data("[DONE]"))]
BASE = [ROLE, *PLAIN, *END]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Writes as (milliseconds after the request, bytes), and the reading that is right."""

    name: str
    writes: list[tuple[int, bytes]]
    outcome: str = "ok"
    error_class: str = "none"
    ttft_ms: float | None = 200.0
    visible_ms: float | None = None
    tokens: int | None = 20
    tpot_ms: float | None = 20.0
    end: str = "close"
    """`close`: the last chunk, then FIN; `reset`: RST."""
    notes: frozenset[str] = field(default_factory=frozenset)
    status: int = 200


def _split(writes: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    out: list[tuple[int, bytes]] = []
    for at, raw in writes:
        cut = raw.find("✅".encode())
        if cut < 0:
            out.append((at, raw))
        else:
            out += [(at, raw[: cut + 1]), (at + 8, raw[cut + 1 :])]
    return out


def _replaced(old: bytes, new: bytes) -> list[tuple[int, bytes]]:
    return [(at, raw.replace(old, new)) for at, raw in BASE]


CUT = [ROLE, *PLAIN[:5]]
SCENARIOS = (
    Scenario(name="plain", writes=BASE),
    Scenario(
        name="reason",
        writes=[
            ROLE,
            *[(200 + 20 * n, data(chunk(reasoning_content=c))) for n, c in enumerate(TEXT[:10])],
            *PLAIN[10:],
            (600, data(fin())),
            (680, data(usage(20, completion_tokens_details={"reasoning_tokens": 10})) + data("[DONE]")),
        ],
        visible_ms=400.0,
    ),
    Scenario(name="multi", writes=[ROLE, *[(200 + 100 * n, data(chunk(content="abcde"))) for n in range(4)], *END]),
    Scenario(name="ping", writes=[(50, b": ping\n\n"), (100, b": ping\n\n"), *BASE[1:]]),
    Scenario(name="crlf", writes=_replaced(b"\n", b"\r\n")),
    Scenario(name="nospace", writes=_replaced(b"data: ", b"data:")),
    Scenario(
        name="err200",
        writes=[*CUT, (300, data({"error": {"message": "the engine died", "code": 500}}) + data("[DONE]"))],
        outcome="provider_error",
        error_class="server_error",
        tokens=5,
        tpot_ms=None,
    ),
    Scenario(name="trunc", writes=CUT, outcome="truncated", error_class="truncated", tokens=5, tpot_ms=None),
    Scenario(name="cut", writes=CUT, end="reset", outcome="provider_error", error_class="reset", tokens=5, tpot_ms=None),
    Scenario(name="u2028", writes=[ROLE, (200, data(chunk(content=" a\u2028b"))), *PLAIN[1:], *END]),
    Scenario(
        name="split",
        writes=[ROLE, *_split([(200 + 20 * n, data(chunk(content="✅"))) for n in range(20)]), *END],
        ttft_ms=208.0,
    ),
    Scenario(
        name="usage_in_fin", writes=[ROLE, *PLAIN, (600, data(fin(usage={"completion_tokens": 20}))), (680, data("[DONE]"))]
    ),
    Scenario(name="nousage", writes=[ROLE, *PLAIN, (600, data(fin())), (680, data("[DONE]"))], notes=frozenset({"no_usage"})),
    Scenario(name="zerousage", writes=[*BASE[:-1], (680, data(usage(0)) + data("[DONE]"))], notes=frozenset({"usage_zero"})),
    Scenario(
        name="coalesce",
        writes=[(600, b"".join(raw for _, raw in BASE))],
        ttft_ms=600.0,
        tpot_ms=None,
        notes=frozenset({"buffered_by_proxy", "few_reads"}),
    ),
    Scenario(name="fields", writes=_replaced(b"data: ", b"event: message\nid: 7\nretry: 3000\ndata: ")),
    Scenario(name="retryonly", writes=[(20, b"retry: 3000\n\n"), *BASE]),
    Scenario(name="noobject", writes=_replaced(b'"object": "chat.completion.chunk", ', b"")),
    Scenario(
        name="azure",
        writes=[(30, data({"id": "", "choices": [], "model": "", "prompt_filter_results": [{"prompt_index": 0}]})), *BASE],
    ),
    Scenario(
        name="nullusage",
        writes=[ROLE, *[(200 + 20 * n, data(chunk(content=c, usage=None))) for n, c in enumerate(TEXT)], *END],
    ),
    Scenario(
        name="cumusage",
        writes=[
            ROLE,
            *[(200 + 20 * n, data(chunk(content=c, usage={"completion_tokens": n + 1}))) for n, c in enumerate(TEXT)],
            *END,
        ],
    ),
    Scenario(name="linger", writes=[*BASE, (3680, b": bye\n\n")]),
    Scenario(name="nodone", writes=[*BASE[:-1], (680, data(usage(20)))], notes=frozenset({"no_done"})),
    Scenario(
        name="r429",
        writes=[(5, b'{"error": {"message": "slow down", "type": "rate_limit"}}')],
        status=429,
        outcome="rate_limited",
        error_class="rate_limited",
        ttft_ms=None,
        tokens=None,
        tpot_ms=None,
    ),
)
"""The 24 scenarios on the base timeline: role at 50 ms, 20 one-token chunks from 200 every 20, usage and [DONE] at 680."""
