"""Dialects: what each sends, who speaks which, and what servers say of their own times."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from app.errors import NotFoundError
from app.measurement.dialects import DROPPABLE, by_name, dialect_for, dialects, request_body
from app.targets.recipes import BUILTIN
from tests.support.recordings import read
from tests.support.scenarios import PLAIN, ROLE, data, fin, usage

ROOT = Path(__file__).parents[3]
USAGE = {"stream_options": {"include_usage": True}}
COLD = {"temperature": 0.0}
SENT: dict[str, dict[str, Any]] = {
    "generic": {"max_tokens": 128, **COLD, **USAGE},
    "openai": {"max_completion_tokens": 128, "stream_options": {"include_usage": True, "include_obfuscation": False}},
    "azure": {"max_completion_tokens": 128, **USAGE},
    "groq": {"max_completion_tokens": 128, **COLD, **USAGE},
    "cerebras": {"max_completion_tokens": 128, **COLD, **USAGE},
    "xai": {"max_completion_tokens": 128, **COLD, **USAGE},
    "openrouter": {"max_tokens": 128, **COLD, **USAGE, "provider": {"allow_fallbacks": False}},
    "together": {"max_tokens": 128, **COLD, **USAGE},
    "fireworks": {"max_tokens": 128, **COLD, **USAGE, "perf_metrics_in_response": True},
    "sambanova": {"max_tokens": 128, **COLD, **USAGE},
    "deepseek": {"max_tokens": 128, **COLD, **USAGE},
    "mistral": {"max_tokens": 128, **COLD},
    "ollama": {"max_tokens": 128, **COLD, **USAGE},
    "ollama-native": {"options": {"num_predict": 128, "temperature": 0.0}},
    "vllm": {
        "max_tokens": 128,
        **COLD,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "ignore_eos": True,
        "min_tokens": 128,
    },
    "sglang": {"max_tokens": 128, **COLD, **USAGE, "ignore_eos": True, "min_tokens": 128},
    "llamacpp": {"max_tokens": 128, **COLD, **USAGE, "ignore_eos": True, "cache_prompt": False},
    "selfhosted": {"max_tokens": 128, **COLD, **USAGE, "ignore_eos": True},
    "gpustack": {"max_tokens": 128, **COLD, **USAGE, "ignore_eos": True},
    "mistralrs": {"max_tokens": 128, **COLD, **USAGE},
    "tgi": {"max_tokens": 128, **COLD, **USAGE},
}


def sent(name: str, *, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    body = request_body(by_name(name), model="m", recipe=BUILTIN["chat-short"], prompt="hello", without=without)
    assert body.pop("model") == "m"
    assert body.pop("messages") == [{"role": "user", "content": "hello"}]
    assert body.pop("stream") is True
    return body


@pytest.mark.parametrize("name", sorted(SENT))
def test_a_dialect_sends_what_its_endpoint_accepts(name: str) -> None:
    assert sent(name) == SENT[name]


def test_no_dialect_is_without_its_test() -> None:
    assert set(SENT) == set(dialects())


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://acme.openai.azure.com/openai/v1", "azure"),
        ("https://acme.services.ai.azure.com/models", "azure"),
        ("https://api.groq.com/openai/v1", "groq"),
        ("https://api.cerebras.ai/v1", "cerebras"),
        ("https://api.x.ai/v1", "xai"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://api.together.xyz/v1", "together"),
        ("https://api.fireworks.ai/inference/v1", "fireworks"),
        ("https://api.sambanova.ai/v1", "sambanova"),
        ("https://api.deepseek.com", "deepseek"),
        ("https://api.mistral.ai/v1", "mistral"),
        ("https://API.Groq.com/openai/v1", "groq"),
        ("https://groq.com.evil.example/v1", "generic"),
        ("http://10.0.0.7:8000/v1", "selfhosted"),
        ("http://[::1]:8000/v1", "selfhosted"),
        ("http://gpu-box:8000/v1", "selfhosted"),
        ("http://vllm.team.svc:8000/v1", "selfhosted"),
        ("https://llm.example.net/v1", "generic"),
    ],
)
def test_the_host_tells_the_dialect(url: str, name: str) -> None:
    assert dialect_for(url).name == name


def test_a_named_dialect_wins_and_an_unknown_one_has_near_matches() -> None:
    assert dialect_for("https://api.groq.com/openai/v1", name="vllm").name == "vllm"
    with pytest.raises(NotFoundError, match=r"did you mean .*llamacpp"):
        by_name("llama-cpp")


def test_keys_go_where_they_are_read_and_calls_where_they_are_answered() -> None:
    assert {name for name, each in dialects().items() if each.auth == "api-key"} == {"azure"}
    assert {each.path for name, each in dialects().items() if name != "ollama-native"} == {"/chat/completions"}
    assert by_name("ollama-native").path == "/api/chat"


@pytest.mark.parametrize("parameter", DROPPABLE)
@pytest.mark.parametrize("name", sorted(SENT))
def test_a_refused_parameter_is_left_out_and_the_output_stays_bounded(name: str, parameter: str) -> None:
    body = sent(name, without=frozenset({parameter}))
    assert parameter not in body
    assert 128 in (body.get("max_tokens"), body.get("max_completion_tokens"), body.get("options", {}).get("num_predict"))


def ended(**last: Any) -> dict[str, float]:
    m = read([ROLE, *PLAIN, (600, data(fin())), (680, data({**usage(20), **last}) + data("[DONE]"))])
    assert (m.outcome, m.output_tokens) == ("ok", 20)
    return {name: pytest.approx(value) for name, value in m.server_timings.items()}


def test_server_times_are_read_from_every_place_in_seconds() -> None:
    counts = {"completion_tokens": 20}
    groq = {"queue_time": 0.02, "prompt_time": 0.01, "completion_time": 0.4, "total_time": 0.41}
    told = {"queue_s": 0.02, "prompt_s": 0.01, "completion_s": 0.4, "total_s": 0.41}
    assert ended(usage={**counts, **groq}) == told
    assert ended(x_groq={"id": "r", "usage": {**counts, **groq}}) == told
    assert ended(time_info={**groq, "created": 1_700_000_000}) == told
    llama = {"prompt_n": 60, "prompt_ms": 12.5, "predicted_n": 20, "predicted_ms": 400.0, "predicted_per_second": 50.0}
    assert ended(timings=llama) == {"prompt_s": 0.0125, "completion_s": 0.4}
    vllm = {"time_to_first_token_ms": 180.0, "generation_time_ms": 380.0, "queue_time_ms": 3.0, "mean_itl_ms": 20.0}
    assert ended(metrics=vllm) == {"ttft_s": 0.18, "completion_s": 0.38, "queue_s": 0.003}
    fireworks = {"server-time-to-first-token": 0.042, "prefill-duration": 0.011, "generation-duration": 0.031}
    assert ended(perf_metrics=fireworks) == {"ttft_s": 0.042, "prompt_s": 0.011, "completion_s": 0.031}
    mistralrs = {"total_prompt_time_sec": 0.1, "total_completion_time_sec": 0.4, "total_time_sec": 0.5}
    assert ended(usage={**counts, **mistralrs}) == {"prompt_s": 0.1, "completion_s": 0.4, "total_s": 0.5}
    assert ended(usage={**counts, "time_to_first_token_ms": 190}) == {"ttft_s": 0.19}
    assert ended(sla_metrics={"ttft_ms": 90, "ts_us": 1}) == {"ttft_s": 0.09}


def test_times_that_are_none_are_left_out() -> None:
    assert ended(timings={"prompt_ms": None, "predicted_ms": "400"}, metrics=[], time_info=3) == {}
    assert ended(timings={"prompt_ms": -1, "predicted_ms": True}) == {}


def test_fireworks_and_openai_say_times_in_headers() -> None:
    headers = [("fireworks-server-time-to-first-token", "0.028"), ("openai-processing-ms", "412")]
    m = read([ROLE, *PLAIN, (600, data(fin()) + data("[DONE]"))], headers=headers)
    assert m.server_timings == {"ttft_s": 0.028, "total_s": 0.412}
    assert (
        read([ROLE], headers=[("openai-processing-ms", "soon"), ("fireworks-server-time-to-first-token", "nan")]).server_timings
        == {}
    )


def line(**more: Any) -> bytes:
    return json.dumps({"model": "m", "created_at": "x", "done": False, **more}).encode() + b"\n"


def test_ollamas_own_api_is_read_line_by_line() -> None:
    words = [(200 + 20 * n, line(message={"role": "assistant", "content": c})) for n, c in enumerate("abcdefghijklmnopqr")]
    thought = [(160 + 20 * n, line(message={"role": "assistant", "content": "", "thinking": "x"})) for n in range(2)]
    times = {"total_duration": 700_000_000, "load_duration": 50_000_000, "prompt_eval_duration": 100_000_000}
    last = line(done=True, done_reason="stop", prompt_eval_count=10, eval_count=20, eval_duration=380_000_000, **times)
    m = read([*thought, *words, (600, last)], content_type="application/x-ndjson")
    assert (m.outcome, m.finish_reason, m.output_tokens, m.token_source, m.prompt_tokens) == ("ok", "stop", 20, "usage", 10)
    assert (m.ttft_s, m.ttft_visible_s, m.tpot_s) == (0.16, 0.2, pytest.approx(0.02))
    assert m.server_timings == {"total_s": 0.7, "load_s": 0.05, "prompt_s": 0.1, "completion_s": 0.38}
    assert read(words, content_type="application/x-ndjson").outcome == "truncated"
    failed = read([*words, (600, b'{"error":"model runner has stopped"}\n')], content_type="application/x-ndjson")
    assert (failed.outcome, failed.error_text) == ("provider_error", "model runner has stopped")


def test_the_table_in_the_documentation_is_what_the_dialects_say() -> None:
    spec = importlib.util.spec_from_file_location("dialects_page", ROOT / "docs" / "make" / "dialects.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    text = (ROOT / "docs" / "dialects.md").read_text()
    assert maker.page(text) == text
