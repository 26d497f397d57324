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
_WORDS = (
    "amber",
    "basin",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbor",
    "inlet",
    "juniper",
    "kelp",
    "lagoon",
    "meadow",
    "nectar",
    "orchard",
    "pebble",
    "quarry",
    "river",
    "saddle",
    "timber",
    "upland",
    "valley",
    "willow",
    "yarrow",
    "zephyr",
    "anchor",
    "beacon",
    "canyon",
    "dune",
    "estuary",
    "field",
    "glacier",
    "hollow",
    "island",
    "jetty",
)
TOKENS_PER_WORD = 1.3


def nonce(rng: Random) -> str:
    """Sixty-four random bits, as words of letters that share no prefix with any before."""
    return f"{rng.getrandbits(64):016x}"


def prompt_of(recipe: Recipe, *, rng: Random) -> str:
    """The prompt of one probe.

    Args:
        recipe: what it asks for, and how long it should be (tokens, roughly).
        rng: randomness of this call. Calls with the same `recipe.prefix` share the long part, and only the end differs.
    """
    task = _TASKS[recipe.prompt]
    if recipe.prompt in {Prompt.FILLER, Prompt.PREFIX}:
        shared = Random(recipe.prefix) if recipe.prefix is not None else rng
        filler = " ".join(shared.choice(_WORDS) for _ in range(int(recipe.prompt_tokens / TOKENS_PER_WORD)))
        return f"[{nonce(shared)}] {filler}\n\n{task} ({nonce(rng)})"
    return f"[{nonce(rng)}] {task}"
