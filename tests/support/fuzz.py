"""The API under schemathesis: every operation of its OpenAPI, fitting and unfitting requests, sent in this process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.errors import InvalidSchema
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.doors import BIG, House

BASE = "http://localhost"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXISTING: Mapping[str, tuple[str, ...]] = {"name": ("lab/tiny", BIG, "ops", "made/one", "made"), "kind": ("hardware", "models")}
"""Values of path parameters that name something: most random ones would only ever see a 404."""
KNOWN: Mapping[str, tuple[Any, ...]] = {
    "provider": ("groq", "lab"),
    "model_spec": ("openai/gpt-oss-120b", "meta-llama/Llama-3.3-70B-Instruct"),
    "hardware": ("H100-SXM-80GB", "groq-lpu-v1"),
    "quantization": ("FP8", "mxfp4", "GPTQ-INT4"),
    "recipe": ("chat-short",),
    "name": ("made/one", "made", "lab/tiny"),
    "kind": ("webhook", "alertmanager", "apprise"),
    "url": ("https://hooks.example.net/x", "slack://a/b/c", "http://127.0.0.1:1/", "${env:HOOK_SECRET}"),
    "urls": (["http://am.example.net:9093"],),
    "secret": ("${env:HOOK_SECRET}", None),
    "every": ("60s", "5m"),
    "starts_at": (None,),
    "ends_at": (None,),
    "match": ({"provider": "groq"}, {}),
    "locations": (["default"],),
    "deadlines": ({}, {"total": "20s"}),
    "slo": ({"ttft_p95": "500ms"},),
    "budget": ({"tokens_per_day": 1000},),
    "speculation": ("unknown", "off", "0.7,4"),
    "parallelism": ("tp", "pp"),
    "stack": (None,),
    "deployment": ({"model_spec": "openai/gpt-oss-120b", "hardware": "H100-SXM-80GB", "devices": 8}, {}),
    "duration": ("1h", "30d"),
}
"""Values of a body's fields that mean something, for the same reason."""


@dataclass
class Prowler:
    """Sends cases to a house and counts the answers by status.

    Args:
        loop: the one loop that the house's connections belong to.
        ids: values of path parameters that exist, added to `EXISTING`.
    """

    house: House
    loop: asyncio.Runner
    ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)

    @property
    def schema(self) -> Any:
        return schemathesis.openapi.from_dict(self.house.app.openapi())

    def operations(self) -> list[Any]:
        found = []
        for result in self.schema.get_all_operations():
            assert not isinstance(result, InvalidSchema), result
            found.append(result.ok())
        return found

    def send(self, case: Case, *, headers: Mapping[str, str]) -> Response:
        """The answer to a case. An `Authorization` of its own gives way to that of `headers`."""
        ready = requests.Request(**_for_requests(case.as_transport_kwargs(base_url=BASE))).prepare()
        sent = [
            (name, value) for name, value in ready.headers.items() if name.lower() not in {"host", "authorization", "cookie"}
        ]
        wire = [(_latin(name), _latin(value)) for name, value in (*sent, *headers.items())]
        answer = self.loop.run(self._exchange(ready, wire))
        self.answers[f"{case.method} {case.operation.path}", answer.status_code] += 1
        return Response(
            status_code=answer.status_code,
            headers={name: answer.headers.get_list(name) for name in answer.headers},
            content=answer.content,
            request=ready,
            elapsed=0.0,
            verify=False,
        )

    async def _exchange(self, ready: requests.PreparedRequest, headers: list[tuple[bytes, bytes]]) -> httpx2.Response:
        transport = httpx2.ASGITransport(app=self.house.app, raise_app_exceptions=True, client=("127.0.0.1", 1234))
        body = ready.body.encode() if isinstance(ready.body, str) else ready.body
        async with httpx2.AsyncClient(transport=transport) as client:
            return await client.request(ready.method or "", ready.url or "", headers=headers, content=body)

    def cases(self, operation: Any, mode: GenerationMode) -> st.SearchStrategy[Case]:
        """Cases of an operation; in half of them, path parameters name what exists, and a body's fields mean something."""
        known = {**EXISTING, **self.ids}

        @st.composite
        def built(draw: st.DrawFn) -> Case:
            case = draw(operation.as_strategy(generation_mode=mode))
            for name in case.path_parameters or ():
                if name in known and draw(st.booleans()):
                    case.path_parameters[name] = draw(st.sampled_from(known[name]))
            if isinstance(case.body, dict) and draw(st.booleans()):
                fields = sorted(case.body.keys() & KNOWN.keys())
                case.body = {**case.body, **{name: draw(st.sampled_from(KNOWN[name])) for name in fields}}
            return case

        return built()

    def prowl(self, visit: Callable[[Case], None], *, examples: int, operations: Callable[[Any], bool] = lambda _: True) -> int:
        """Visit about `examples` cases of each operation, half of them unfitting where there is anything to get wrong."""
        visited = 0
        for operation in filter(operations, self.operations()):
            for mode in GenerationMode:
                visited += self._run(self.cases(operation, mode), visit, examples=max(1, examples // 2))
        return visited

    def _run(self, strategy: st.SearchStrategy[Case], visit: Callable[[Case], None], *, examples: int) -> int:
        count = 0

        @seed(20261201)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        @given(strategy)
        def each(case: Case) -> None:
            nonlocal count
            count += 1
            visit(case)

        try:
            each()
        except Unsatisfiable:
            return 0
        return count


def _for_requests(kwargs: dict[str, Any]) -> dict[str, Any]:
    names = {"method", "url", "headers", "files", "data", "params", "auth", "cookies", "json"}
    return {name: value for name, value in kwargs.items() if name in names}


def _latin(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1", "replace")
