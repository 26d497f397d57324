"""What becomes of orders: one seed, one fate; every dialect is read right by the measurement; every token counted."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from app.catalog.load import Catalog, load_catalog
from app.errors import UsageError
from app.expectation.speculation import Speculation
from app.measurement.replay import Recorded, replay
from app.simulator.cache import PromptCache, count_tokens
from app.simulator.desk import Desk, Job
from app.simulator.faults import Fault, draw
from app.simulator.hidden import Hidden
from app.simulator.host import Host
from app.simulator.order import Order, parse_order
from app.simulator.plan import Habits
from app.simulator.shapes import SHAPES
from app.simulator.words import wants_code

MODEL = "Qwen/Qwen3-8B"
HOST = Host(name="h", model=MODEL, hidden=Hidden(model_spec=MODEL, hardware="H100-SXM-80GB"))
ORDER = Order(model=MODEL, prompt="x" * 400, stream=True, usage=True, most=40, exact=True)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def read(job: Job) -> dict[str, Any]:
    body = b"".join(job.events()) + job.ending()
    return replay(Recorded(body=body, content_type="text/event-stream"), file="-", now=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("dialect", sorted(SHAPES))
def test_every_dialect_is_read_with_every_token(dialect: str, catalog: Catalog) -> None:
    habits = Habits(reasoning=0.25, steps_per_chunk=3, flush_s=0.05)
    desk = Desk(host=replace(HOST, dialect=dialect, habits=habits, cache_tokens=16), catalog=catalog)
    desk.take(ORDER, now_s=0)
    job = desk.take(ORDER, now_s=0)
    found = read(job)
    assert (found["outcome"], found["error_class"], found["finish_reason"]) == ("ok", "none", "length")
    assert (found["prompt_tokens"], found["output_tokens"], found["cached_tokens"]) == (100, 40, 96)
    assert found["done_seen"] is (dialect != "cerebras")
    assert found["token_source"] == "usage"
    assert found["reasoning_chars"] == len("".join(job.texts[:10]))
    assert found["content_chars"] == len("".join(job.texts[10:]))
    if dialect in {"groq", "cerebras"}:
        assert found["server_timings"]["queue_s"] == 0
        assert found["server_timings"]["completion_s"] == pytest.approx(job.answer.completion_s)


@pytest.mark.parametrize("dialect", sorted(SHAPES))
def test_a_call_without_stream_has_the_same_text_and_usage(dialect: str, catalog: Catalog) -> None:
    desk = Desk(host=replace(HOST, dialect=dialect, habits=Habits(reasoning=0.25)), catalog=catalog)
    job = desk.take(replace(ORDER, stream=False, usage=False), now_s=0)
    body = json.loads(job.whole())
    assert body["choices"][0]["message"]["content"] == "".join(job.texts[10:])
    assert body["choices"][0]["message"]["reasoning"] == "".join(job.texts[:10])
    assert body["usage"]["completion_tokens"] == 40


def test_usage_is_sent_when_asked_for(catalog: Catalog) -> None:
    asked, unasked = (Desk(host=HOST, catalog=catalog).take(replace(ORDER, usage=u), now_s=0) for u in (True, False))
    assert b'"usage"' in asked.ending()
    assert b'"usage"' not in unasked.ending()
    groq = Desk(host=replace(HOST, dialect="groq"), catalog=catalog).take(replace(ORDER, usage=False), now_s=0)
    assert b'"x_groq"' in groq.ending()


def test_the_same_seed_gives_the_same_fate_to_the_nth_order(catalog: Catalog) -> None:
    noisy = replace(HOST, habits=Habits(queue_median_s=0.1, jitter=0.2), odds={Fault.RESET: 0.5})
    one, same, other = (Desk(host=noisy, catalog=catalog, seed=seed) for seed in (7, 7, 8))
    fates = [[desk.take(ORDER, now_s=0) for _ in range(5)] for desk in (one, same, other)]
    assert fates[0] == fates[1]
    assert fates[0] != fates[2]


def test_streams_under_way_slow_the_next_one(catalog: Catalog) -> None:
    desk = Desk(host=HOST, catalog=catalog)
    alone = desk.take(ORDER, now_s=0).plan.end_s
    desk.streams = 8
    assert desk.take(ORDER, now_s=0).plan.end_s > alone


def test_a_draft_makes_code_faster_than_prose(catalog: Catalog) -> None:
    drafting = Host(name="d", model=MODEL, hidden=replace(HOST.hidden, speculation=Speculation(alpha=0.9, gamma=3, cost=0.1)))
    desk = Desk(host=drafting, catalog=catalog)
    code, prose = (desk.take(replace(ORDER, prompt=p, most=2000), now_s=0).plan.end_s for p in ("Write Python", "Tell a story"))
    assert prose / code == pytest.approx(3.439 / 2.21, rel=0.06)


def test_without_ignore_eos_an_answer_may_end_by_itself(catalog: Catalog) -> None:
    job = Desk(host=HOST, catalog=catalog).take(replace(ORDER, most=8000, exact=False), now_s=0)
    assert 300 <= job.plan.tokens <= 700
    assert job.answer.finish == "stop"
    assert read(job)["output_tokens"] == job.plan.tokens


def test_faults_come_as_often_as_their_odds_say() -> None:
    rng, odds = Random(5), {Fault.RATE_LIMITED: 0.1, Fault.RESET: 0.3}
    drawn = [draw(odds, rng) for _ in range(20000)]
    shares = {f: sum(m is not None and m.fault is f for m in drawn) / len(drawn) for f in Fault}
    assert shares[Fault.RATE_LIMITED] == pytest.approx(0.1, abs=0.01)
    assert shares[Fault.RESET] == pytest.approx(0.3, abs=0.01)
    assert sum(shares.values()) == pytest.approx(0.4, abs=0.015)


def test_a_prompt_cache_knows_whole_blocks_of_what_it_read() -> None:
    cache = PromptCache(block_tokens=16)
    assert cache.read("a" * 640) == 0
    assert cache.read("a" * 639) == 144
    assert cache.read("a" * 64 + "b" * 576) == 16
    assert cache.read("c" + "a" * 639) == 0
    assert PromptCache(block_tokens=0).read("a" * 640) == 0


def test_a_prompt_cache_forgets_the_oldest() -> None:
    cache = PromptCache(block_tokens=1, keep=2)
    cache.read("aaaabbbb")
    assert cache.read("aaaa") == 1
    cache.read("ccccdddd")
    assert cache.read("aaaa") == 0


def test_tokens_are_counted_by_bytes() -> None:
    assert [count_tokens(text) for text in ("", "abcd", "abcde", "ää" * 4)] == [1, 1, 2, 4]


def test_code_is_told_by_its_words() -> None:
    assert wants_code("Write a PYTHON module")
    assert not wants_code("Tell a story about the sea")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "model is required"),
        (b'{"model": 3}', "model is required"),
        (b'{"model": "m"}', "messages"),
        (b'{"model": "m", "messages": ["x"]}', "messages"),
        (b'{"model": "m", "messages": [{}], "max_tokens": 0}', "max_tokens"),
        (b'{"model": "m", "messages": [{}], "max_tokens": true}', "max_tokens"),
        (b'{"model": "m", "messages": [{}], "max_tokens": 1, "max_completion_tokens": 1}', "exclude"),
    ],
)
def test_a_wrong_order_is_refused_with_the_reason(body: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_order(body)


def test_an_order_is_read_in_both_ways_of_writing_a_message() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, 3, {"type": "text", "text": "b"}]
    messages = [{"role": "user", "content": parts}, {"role": "user", "content": "c"}, {"role": "assistant", "content": None}]
    assert parse_order(json.dumps({"model": "m", "messages": messages, "max_completion_tokens": 9}).encode()) == Order(
        model="m", prompt="ab\nc\n", most=9
    )
    asked = {"model": "m", "messages": messages, "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True}
    order = parse_order(json.dumps(asked).encode())
    assert (order.stream, order.usage, order.exact) == (True, True, True)
