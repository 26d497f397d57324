"""A prompt cache: which leading blocks of a prompt were read before."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b

BYTES_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """Tokens of a text as these hosts count them: one for each 4 bytes, and at least one."""
    return max(1, -(-len(text.encode()) // BYTES_PER_TOKEN))


@dataclass(slots=True, kw_only=True)
class PromptCache:
    """Prefixes of whole blocks, the most recent `keep` of them. A block of 0 tokens caches nothing."""

    block_tokens: int
    keep: int = 4096
    _seen: OrderedDict[bytes, None] = field(default_factory=OrderedDict)

    def read(self, prompt: str) -> int:
        """Tokens of the prompt's longest prefix that was read before; remembers all of its prefixes."""
        if not self.block_tokens:
            return 0
        raw, size = prompt.encode(), self.block_tokens * BYTES_PER_TOKEN
        cached, unbroken, prefix = 0, True, blake2b(digest_size=16)
        for start in range(0, len(raw) - size + 1, size):
            prefix.update(raw[start : start + size])
            key = prefix.digest()
            unbroken = unbroken and key in self._seen
            cached += self.block_tokens if unbroken else 0
            self._seen[key] = None
            self._seen.move_to_end(key)
        while len(self._seen) > self.keep:
            self._seen.popitem(last=False)
        return cached
