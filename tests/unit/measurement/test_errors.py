"""Whose problem an answer is: body first, then status; waits and limits in every format; and no secret in any text."""

import json
from datetime import UTC, datetime

import pytest

from app.measurement.complaint import TEXT_LIMIT, clean, complaint_of_body, conceal
from app.measurement.limits import number, rate_limits, retry_after_s, span_s
from app.measurement.recording import FailureKind
from tests.support.recordings import read
from tests.support.scenarios import BASE, CUT, chunk, data, fin, usage

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def answered(status: int, body: object) -> tuple[str, str]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    m = read([(5, raw)], status=status, content_type="application/json")
    assert (m.ttft_s, m.output_tokens, m.reliable.ttft, m.reliable.tps) == (None, None, False, False)
    return m.outcome, m.error_class


def said(message: str, **more: object) -> dict[str, object]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("kind", "outcome", "error_class"),
    [
        (FailureKind.BUDGET, "skipped_budget", "budget"),
        (FailureKind.LOCAL, "local_error", "local"),
        (FailureKind.CANCELLED, "local_error", "local"),
        (FailureKind.DNS, "provider_error", "dns"),
        (FailureKind.CONNECT, "provider_error", "connect"),
        (FailureKind.TLS, "provider_error", "tls"),
        (FailureKind.RESET, "provider_error", "reset"),
        (FailureKind.PROTOCOL, "provider_error", "reset"),
        (FailureKind.DEADLINE_CONNECT, "timeout", "timeout"),
        (FailureKind.DEADLINE_FIRST_TOKEN, "timeout", "timeout"),
        (FailureKind.DEADLINE_TOTAL, "timeout", "timeout"),
        (FailureKind.STALL, "stalled", "stall"),
        (FailureKind.OVERSIZE, "malformed", "oversize"),
    ],
)
def test_rules_1_to_6_what_the_wire_saw_comes_first(kind: FailureKind, outcome: str, error_class: str) -> None:
    m = read(CUT, failure=kind)
    assert (m.outcome, m.error_class, m.error_text) == (outcome, error_class, kind.value)


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (400, said("This model's maximum context length is 8192 tokens"), ("bad_request", "context_length")),
        (413, said("prompt is too long: 9000 tokens"), ("bad_request", "context_length")),
        (500, said("the request exceeds the available context size"), ("bad_request", "context_length")),
        (429, said("Request too large: reduce the length of the messages"), ("rate_limited", "rate_limited")),
        (400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided"}, ("auth", "auth")),
        (403, said("Invalid API key"), ("auth", "auth")),
        (401, b"<html><body>401 Authorization Required</body></html>", ("auth", "auth")),
        (401, b"", ("auth", "auth")),
        (400, said("The model `x` has been decommissioned", code="model_decommissioned"), ("not_found", "not_found")),
        (404, said("No endpoints found for x"), ("not_found", "not_found")),
        (404, b"404 page not found", ("not_found", "not_found")),
        (402, said("Payment needed"), ("rate_limited", "quota")),
        (429, said("You exceeded your current quota", code="insufficient_quota"), ("rate_limited", "quota")),
        (403, said("Insufficient balance"), ("rate_limited", "quota")),
        (429, said("See your billing page for the quota of this tier"), ("rate_limited", "rate_limited")),
        (503, b"", ("provider_error", "overloaded")),
        (529, b"", ("provider_error", "overloaded")),
        (429, {"error": {"code": "1305", "message": "too many users now"}}, ("provider_error", "overloaded")),
        (429, said("Model busy, retry later"), ("provider_error", "overloaded")),
        (498, said("flex tier", code="capacity_exceeded"), ("provider_error", "overloaded")),
        (429, said("slow down"), ("rate_limited", "rate_limited")),
        (429, {"error": "Too Many Requests", "message": "slow down"}, ("rate_limited", "rate_limited")),
        (403, said("this region may not"), ("auth", "permission")),
        (408, b"upstream request timeout", ("provider_error", "timeout")),
        (504, b"<html>gateway time-out</html>", ("provider_error", "timeout")),
        (502, b"<html><h1>502 Bad Gateway</h1></html>", ("provider_error", "bad_gateway")),
        (520, b"", ("provider_error", "bad_gateway")),
        (527, b"", ("provider_error", "bad_gateway")),
        (500, said("boom"), ("provider_error", "server_error")),
        (501, b"", ("provider_error", "server_error")),
        (302, b"", ("provider_error", "server_error")),
        (400, said("temperature must be at most 2"), ("bad_request", "bad_request")),
        (422, b"Failed to deserialize the JSON body into the target type", ("bad_request", "bad_request")),
        (413, b"too large", ("bad_request", "bad_request")),
    ],
)
def test_rules_7_to_16_the_body_then_the_status(status: int, body: object, found: tuple[str, str]) -> None:
    assert answered(status, body) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"", ("empty", "empty")),
        (b"  \n", ("empty", "empty")),
        (b"data: [DONE]", ("empty", "empty")),
        (b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}', ("malformed", "not_sse")),
        (b'{"choices":[{"message":{},"finish_reason":"content_filter"}]}', ("content_filter", "content_filter")),
        (b'{"error":{"message":"boom"}}', ("malformed", "not_sse")),
        (b"<html>We are down</html>", ("malformed", "not_sse")),
        (b"data: {oops\n\n", ("malformed", "not_sse")),
    ],
)
def test_rules_6_and_18_a_200_that_is_no_event_stream(body: bytes, found: tuple[str, str]) -> None:
    m = read([(5, body)] if body else [])
    assert (m.outcome, m.error_class) == found


def finished(reason: str, *, output: bool = True) -> tuple[str, str, tuple[str, ...]]:
    end = chunk()
    end["choices"][0]["finish_reason"] = reason
    m = read([*(CUT if output else CUT[:1]), (600, data(end) + data(usage(0 if not output else 5)) + data("[DONE]"))])
    return m.outcome, m.error_class, m.notes


def test_rules_19_and_20_how_a_stream_ended() -> None:
    assert finished("content_filter")[:2] == ("content_filter", "content_filter")
    assert finished("error")[:2] == ("provider_error", "server_error")
    assert finished("length", output=False)[:2] == ("empty", "empty")
    assert finished("stop")[:2] == ("ok", "none")
    assert read(BASE).error_text is None


def test_an_empty_run_whose_budget_went_into_a_thought_says_so() -> None:
    end = fin()
    end["choices"][0]["finish_reason"] = "length"
    billed = usage(128, completion_tokens_details={"reasoning_tokens": 128})
    m = read([CUT[0], (600, data(end) + data(billed) + data("[DONE]"))])
    assert (m.outcome, "budget_spent_on_reasoning" in m.notes, "hidden_reasoning" in m.notes) == ("empty", True, True)


def test_too_long_a_context_is_only_our_fault_before_output() -> None:
    error = data({"error": {"message": "maximum context length exceeded", "type": "invalid_request_error"}})
    assert read([(5, error)]).error_class == "context_length"
    assert read([*CUT, (300, error)]).error_class == "bad_request"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0),
        ("0", 0.0),
        ("3563.6066987514496", 3563.6066987514496),
        ("2m59.56s", 179.56),
        ("1h37m55.2s", 5875.2),
        ("1d2h", 93600.0),
        ("120ms", 0.12),
        ("1m", 60.0),
        (" 48s ", 48.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thursday, 01-Jan-26 12:00:30 GMT", 30.0),
        ("Thu Jan  1 12:00:30 2026", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        (str(int(NOW.timestamp()) + 7), 7.0),
        (str((int(NOW.timestamp()) + 7) * 1000), 7.0),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("1e300", None),
        ("", None),
        ("soon", None),
        ("m", None),
    ],
)
def test_a_wait_is_read_in_every_format(text: str, seconds: float | None) -> None:
    assert span_s(text, now=NOW) == (None if seconds is None else pytest.approx(seconds))


def test_of_two_waits_the_longer_one_counts() -> None:
    assert retry_after_s([("retry-after", "1"), ("retry-after-ms", "0")], now=NOW) == 1.0
    assert retry_after_s([("retry-after-ms", "660")], now=NOW) == 0.66
    assert retry_after_s([("retry-after-ms", "x"), ("retry-after-ms", "nan"), ("retry-after", "y")], now=NOW) is None


def test_a_wait_on_a_healthy_answer_means_nothing() -> None:
    assert read(BASE, headers=[("retry-after", "2")]).retry_after_s is None
    assert read([(5, b"")], status=503, headers=[("retry-after", "2")]).retry_after_s == 2.0


def test_rate_limits_are_numbers_and_resets_are_seconds_from_now() -> None:
    headers = [
        ("x-ratelimit-limit-requests", "14400"),
        ("x-ratelimit-remaining-tokens", "9223372036854775807"),
        ("x-ratelimit-reset-requests", "1h37m55.2s"),
        ("x-ratelimit-reset", str((int(NOW.timestamp()) + 7) * 1000)),
        ("ratelimitbysize-reset", "31"),
        ("x-ratelimit", "false"),
        ("x-ratelimit-limit-tokens", "nan"),
        ("date", "x"),
    ]
    assert rate_limits(headers, now=NOW) == {
        "ratelimit-limit-requests": 14400.0,
        "ratelimit-remaining-tokens": 9223372036854775807.0,
        "ratelimit-reset-requests": 5875.2,
        "ratelimit-reset": 7.0,
        "ratelimitbysize-reset": 31.0,
    }
    assert [number(text) for text in ("1.5", "x", "inf", "-3")] == [1.5, None, None, -3.0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "a", "code": 400}}, "a"),
        ({"error": "a"}, "a"),
        ({"error": "Too Many Requests", "message": "a"}, "a"),
        ({"message": "a", "type": "t"}, "a"),
        ({"detail": "a"}, "a"),
        ({"detail": [{"loc": ["body"], "msg": "a"}]}, "a"),
        ({"detail": ["a"]}, "a"),
        ({"error": {"error": {"message": "a"}}}, "a"),
        ({"error_code": "X", "message": "a"}, "a"),
        ({"error": {"code": "only_a_code"}}, "only_a_code"),
        ({"error": {"x": 1}}, "an error without a message"),
        (["a"], "['a']"),
        ({"error": {"message": "a", "metadata": {"raw": "x"}}}, "a"),
    ],
)
def test_the_complaint_is_found_in_every_shape(body: object, message: str) -> None:
    assert complaint_of_body(json.dumps(body).encode()).message == message


def test_pages_and_texts_lose_their_markup() -> None:
    page = b"<html><head><style>p {}</style><script>var key = 1;</script></head><h1>502 &amp; more</h1>\n<p>nginx</p></html>"
    assert complaint_of_body(page).message == "502 & more nginx"
    assert complaint_of_body(b"upstream\x00 request\r\n timeout").message == "upstream request timeout"
    assert len(complaint_of_body(b"x " * 500).message) == TEXT_LIMIT
    assert complaint_of_body(b"[" * 100_000).message.startswith("[[[")
    assert complaint_of_body(b"\xff\xfe").message


@pytest.mark.parametrize(
    "secret",
    [
        *(f"{maker}abcdefghijklmnop1234" for maker in ("sk-", "gsk_", "csk-", "xai-", "hf_", "nvapi-")),
        "Bearer abcdefgh.12345678",
        "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefgh",
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "0123456789abcdef0123456789abcdef",
        "a1B2" * 12,
    ],
)
def test_what_looks_like_a_secret_is_in_no_text(secret: str) -> None:
    for status, body in ((401, f"no such key: {secret}"), (500, json.dumps(said(f"called with {secret} by us")))):
        m = read([(5, body.encode())], status=status)
        assert m.error_text is not None
        assert secret.rsplit(maxsplit=1)[-1] not in m.error_text
        assert "[redacted]" in m.error_text
    assert secret not in (read([*CUT, (300, data(said(secret)))]).error_text or "")


def test_words_are_no_secrets() -> None:
    for text in ("the model gpt-oss-120b-instruct-fp8 is not available", "key-value cache exhausted", "rate limit of org"):
        assert clean(text) == text


def test_what_an_error_repeats_of_the_prompt_is_left_out() -> None:
    prompt = "[0123456789abcdef] Explain to a new colleague how a suspension bridge carries its load."
    text = f"bad input: '{prompt[:50]}' at 3, and '{prompt[20:70]}' at 4"
    assert conceal(text, prompt) == "bad input: '[prompt]' at 3, and '[prompt]' at 4"
    assert conceal("Explain yourself", prompt) == "Explain yourself"
    assert conceal("", prompt) == ""
