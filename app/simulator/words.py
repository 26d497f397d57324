"""Text for tokens: prose or code, one piece a token, without end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

_NOUNS = (
    " bridge",
    " river",
    " wind",
    " stone",
    " keeper",
    " letter",
    " lamp",
    " harbour",
    " salt",
    " morning",
    " tide",
    " rope",
)
_OTHERS = (" the", " a", " slowly", " and", " then", " carried", " forgot", " under", " between", " until", " nobody", ",", ".")
_PROSE = (*_NOUNS, *_OTHERS)
_METHOD = ("    def", " area", "(self", ")", " ->", " float", ":\n")
_CODE = (*_METHOD, "        return", " self", ".", "width", " *", " self", ".height", "\n")
_CODE_WORDS = ("python", "code", "function", "def ", "class ", "```", "module", "program")


def wants_code(prompt: str) -> bool:
    """Does this prompt ask for code?"""
    lower = prompt.lower()
    return any(word in lower for word in _CODE_WORDS)


def pieces(*, code: bool, rng: Random) -> Iterator[str]:
    """Text of one token after another."""
    for number in count():
        yield _CODE[number % len(_CODE)] if code else rng.choice(_PROSE)
