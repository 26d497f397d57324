"""Prompts of the recipes. Each starts with a nonce: a fixed prompt would measure the provider's prompt cache."""

from __future__ import annotations

from random import Random

from app.targets.model import Prompt, Recipe

_TASKS = {
    Prompt.CHAT: "Explain to a new colleague how a suspension bridge carries its load, and what its builders had to learn. "
    "Write flowing text of at least two hundred words, without lists, and do not stop early.",
    Prompt.PROSE: "Tell an unhurried and surprising story about a lighthouse keeper who collects misdirected letters. "
    "Let every sentence take a turn that nobody would guess. Write at least two hundred words and do not stop early.",
    Prompt.CODE: "Write a Python module with dataclasses for a point, a line, a rectangle and a circle, each with area, "
    "perimeter and translate methods and type hints. Only code, no comments, at least one hundred and fifty lines.",
    Prompt.FILLER: "The words above mean nothing. Answer with a single short sentence about the sea.",
    Prompt.PREFIX: "The words above mean nothing. Answer with a single short sentence about the hills.",
}


def _words(text: str) -> list[str]:
    return text.split()


_ADJECTIVES = _words(
    "old young quiet bright dark green small large cold warm early late narrow broad heavy light empty distant "
    "silver golden wooden broken hidden strange gentle rough simple patient famous lonely"
)
_NOUNS = _words(
    "river bridge garden village mountain forest window station harbor letter engine farmer doctor soldier teacher "
    "captain winter summer morning evening market castle island valley road tower field kitchen lamp horse boat "
    "wheel mirror clock table painter engineer stone cloud storm"
)
_VERBS = _words(
    "follows carries watches crosses remembers finds leaves reaches covers protects supports touches serves joins "
    "meets faces holds keeps sees"
)
TOKENS_OF_A_SENTENCE = 11
"""Ten words and a full stop; each word is one token of the vocabularies of GPT-4, GPT-4o, DeepSeek and Claude."""
TOKENS_AROUND = 48
"""Both nonces, the task, and what a chat template adds."""


def nonce(rng: Random) -> str:
    """Sixty-four random bits: no prompt begins like any before."""
    return f"{rng.getrandbits(64):016x}"


def prompt_of(recipe: Recipe, *, rng: Random, prefix: Random | None = None) -> str:
    """The prompt of one probe.

    Args:
        recipe: what it asks for, and how long it should be (tokens, within some percent of any vocabulary).
        rng: randomness of this call.
        prefix: randomness shared by a pair; with it the long part is the same in both, and only the end differs. So it is
            in calls whose recipe names the same `prefix`.
    """
    task = _TASKS[recipe.prompt]
    if recipe.prompt in {Prompt.FILLER, Prompt.PREFIX}:
        shared = Random(recipe.prefix) if recipe.prefix is not None else prefix or rng
        start = nonce(shared)
        count = max(1, (recipe.prompt_tokens - TOKENS_AROUND) // TOKENS_OF_A_SENTENCE)
        filler = " ".join(_sentence(shared) for _ in range(count))
        return f"[{start}] {filler}\n\n{task} ({nonce(rng)})"
    return f"[{nonce(rng)}] {task}"


def _sentence(rng: Random) -> str:
    """Words that nobody has put in this order before."""
    who, what, where = rng.sample(_NOUNS, 3)
    first, second = rng.sample(_ADJECTIVES, 2)
    return f"The {first} {who} {rng.choice(_VERBS)} the {second} {what} near the {where}."
