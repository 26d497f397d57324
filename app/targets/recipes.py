"""The recipes that everyone has. They never change their meaning: runs of one recipe are comparable for ever."""

from __future__ import annotations

from collections.abc import Mapping

from app.targets.model import Prompt, Recipe

DEFAULT_RECIPE = "chat-short"

_RECIPES = (
    Recipe(name="chat-short", prompt=Prompt.CHAT, prompt_tokens=60, output_tokens=128),
    Recipe(name="prose", prompt=Prompt.PROSE, prompt_tokens=60, output_tokens=128),
    Recipe(name="code", prompt=Prompt.CODE, prompt_tokens=60, output_tokens=128),
    Recipe(name="prefill-2k", prompt=Prompt.FILLER, prompt_tokens=2048, output_tokens=16),
    Recipe(name="prefill-8k", prompt=Prompt.FILLER, prompt_tokens=8192, output_tokens=16),
    Recipe(name="warm-prefix", prompt=Prompt.PREFIX, prompt_tokens=2048, output_tokens=16, paired=True),
)

BUILTIN: Mapping[str, Recipe] = {recipe.name: recipe for recipe in _RECIPES}
"""Name -> recipe. 2,048 tokens of prefix exceed the 1,024 from which providers start to cache."""
