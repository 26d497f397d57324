"""Every recorded body reads as its expectation says."""

from pathlib import Path

import pytest

from tests.support.corpus import FILES, meta_of, replayed

FIRST = ("output", "content", "visible", "reasoning", "tool", "refusal")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_recorded_body_is_classed_as_expected(path: Path) -> None:
    expect = meta_of(path)["expect"]
    assert replayed(path)["error_class"] in [expect["class"], *expect["class_also"]]


@pytest.mark.parametrize("path", [p for p in FILES if "n_events" in meta_of(p)["expect"]], ids=lambda p: p.name)
def test_a_recorded_stream_reads_as_expected(path: Path) -> None:
    expect, found = meta_of(path)["expect"], replayed(path)
    assert found["events"] == expect["n_events"]
    assert found["done_seen"] == expect["done_seen"]
    for name in FIRST:
        assert (name, found[f"first_{name}_index"]) == (name, expect[f"first_{name}_event"])
    for name in ("content_chars", "content_sha256", "reasoning_chars", "reasoning_sha256"):
        assert (name, found[name]) == (name, expect[name])
    finishes = [reason for _, choice, reason in expect["finish"] if choice == 0]
    assert found["finish_reason"] == (finishes[-1] if finishes else None)
    assert found["error_seen"] == bool(expect["errors"])
    usage = expect["usage_last"] or {}
    assert found["prompt_tokens"] == usage.get("prompt_tokens")
    assert found["completion_tokens"] == usage.get("completion_tokens")
    if expect["usage"]:
        assert found["reasoning_tokens"] == expect["usage"][-1][5]
        assert found["cached_tokens"] == expect["usage"][-1][6]
