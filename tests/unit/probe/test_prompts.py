"""Prompts: never the same beginning twice, as long as they claim, and pairs that share all but their end."""

import re
from random import Random

import pytest

from app.probe.prompts import prompt_of
from app.targets.recipes import BUILTIN

LONG = [recipe for recipe in BUILTIN.values() if recipe.prompt_tokens > 1000]
SHORT = [recipe for recipe in BUILTIN.values() if recipe.prompt_tokens <= 1000]


def test_the_recipes_that_everyone_has_are_there() -> None:
    assert list(BUILTIN) == ["chat-short", "prose", "code", "prefill-2k", "prefill-8k", "warm-prefix"]
    assert [(r.prompt_tokens, r.output_tokens, r.paired) for r in BUILTIN.values()] == [
        (60, 128, False),
        (60, 128, False),
        (60, 128, False),
        (2048, 16, False),
        (8192, 16, False),
        (2048, 16, True),
    ]


@pytest.mark.parametrize("recipe", BUILTIN.values(), ids=lambda r: r.name)
def test_no_two_prompts_begin_alike(recipe: object) -> None:
    rng = Random(1)
    starts = {prompt_of(recipe, rng=rng)[:18] for _ in range(200)}  # type: ignore[arg-type]  # a Recipe
    assert len(starts) == 200
    assert all(re.fullmatch(r"\[[0-9a-f]{16}\]", start) for start in starts)


@pytest.mark.parametrize("recipe", LONG, ids=lambda r: r.name)
def test_a_long_prompt_has_as_many_tokens_as_it_claims(recipe: object) -> None:
    """Each of its words is one token of four vocabularies; the nonces take about ten tokens each."""
    prompt = prompt_of(recipe, rng=Random(1))  # type: ignore[arg-type]  # a Recipe
    words_and_stops = len(re.findall(r"[A-Za-z]+|\.", prompt))
    assert words_and_stops + 20 == pytest.approx(recipe.prompt_tokens, rel=0.02)  # type: ignore[attr-defined]


@pytest.mark.parametrize("recipe", SHORT, ids=lambda r: r.name)
def test_a_short_prompt_is_about_as_long_as_it_claims(recipe: object) -> None:
    prompt = prompt_of(recipe, rng=Random(1))  # type: ignore[arg-type]  # a Recipe
    tokens = len(re.findall(r"\w+|[^\w\s]", prompt)) + 10
    assert tokens == pytest.approx(recipe.prompt_tokens, rel=0.15)  # type: ignore[attr-defined]


def test_a_pair_shares_everything_but_its_end() -> None:
    recipe, rng = BUILTIN["warm-prefix"], Random(1)
    first, second = (prompt_of(recipe, rng=rng, prefix=Random(7)) for _ in range(2))
    assert first != second
    shared = next(at for at, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
    assert shared > 0.99 * len(first)
    assert prompt_of(recipe, rng=rng, prefix=Random(8))[:18] != first[:18]
