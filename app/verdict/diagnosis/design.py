"""The experiments as they are run: which calls, in which order, and what that may cost. Pure.

Orders are balanced or drawn, so that a drift of the provider falls on both sides of a comparison.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b

from app.targets.model import Prompt, Recipe
from app.verdict.diagnosis.model import Call, Experiment, Round

PAIRS = 10
"""Pairs of code and prose. A draft that accepts worst (13 % between them) shows at 6 % of noise a call."""
CACHE_PAIRS = 8
LENGTHS = (64, 512, 1024, 2048, 4096)
REPEATS = 4
STREAMS = (1, 2, 4)
RAMPS = 3
SHORT_TOKENS = 128
"""Context in the middle of a call for code or prose: what an expectation of their speed is made for."""
PREFILL_TOKENS = 512
"""The prompt that an expectation of prefill is made for."""
PREFIX_LEAST, PREFIX_MOST = 1024, 8192
"""Providers cache from 1,024 tokens on, at the latest."""

_CODE = Recipe(name="code", prompt=Prompt.CODE, prompt_tokens=60, output_tokens=128)
_PROSE = Recipe(name="prose", prompt=Prompt.PROSE, prompt_tokens=60, output_tokens=128)


def rounds_of(test: Experiment, *, seed: int, prefix_tokens: int = 2048, most_streams: int = max(STREAMS)) -> tuple[Round, ...]:
    """The rounds of an experiment, in order; none where it cannot be run.

    Args:
        test: which.
        seed: decides orders and prefixes.
        prefix_tokens: length of the shared prefixes of the cache's pairs.
        most_streams: how many streams the provider may be sent at once.
    """
    match test:
        case Experiment.SPECULATION:
            return tuple((_text(arm, pair),) for pair in range(PAIRS) for arm in _turn(pair, "code", "prose"))
        case Experiment.LENGTHS:
            return tuple(
                (_length(n, repeat),) for repeat in range(REPEATS) for n in sorted(LENGTHS, key=partial(_drawn, seed, repeat))
            )
        case Experiment.STREAMS:
            steps = [n for n in STREAMS if n <= most_streams]
            return tuple(_streams(n, ramp) for ramp in range(RAMPS) for n in steps if len(steps) > 1)
        case _:
            return tuple(
                (_prefix(arm, pair, _drawn(seed, "prefix", pair), prefix_tokens),)
                for pair in range(CACHE_PAIRS)
                for arm in ("cold", "warm")
            )


def _drawn(*what: object) -> int:
    """A number that looks random and is the same for the same things: 62 bits of a hash."""
    return int.from_bytes(blake2b("/".join(map(str, what)).encode(), digest_size=8).digest(), "big") >> 2


def cost_of(rounds: tuple[Round, ...]) -> int:
    """Tokens that rounds may use."""
    return sum(call.tokens for each in rounds for call in each)


def prefix_for(*, prompt_token_s: float | None, noise_s: float | None, most: int) -> int:
    """How long the shared prefix must be for its prefill to stand out: four times the noise of TTFT, within bounds."""
    wanted = 2048 if not prompt_token_s or noise_s is None else round(4 * noise_s / prompt_token_s)
    return max(PREFIX_LEAST, min(wanted, PREFIX_MOST, most))


def _turn(pair: int, first: str, second: str) -> tuple[str, str]:
    return (first, second) if pair % 2 == 0 else (second, first)


def _text(arm: str, pair: int) -> Call:
    return Call(test=Experiment.SPECULATION, arm=arm, pair=pair, recipe=_CODE if arm == "code" else _PROSE)


def _length(tokens: int, repeat: int) -> Call:
    recipe = Recipe(name=f"prompt-{tokens}", prompt=Prompt.FILLER, prompt_tokens=tokens, output_tokens=16)
    return Call(test=Experiment.LENGTHS, arm=str(tokens), pair=repeat, recipe=recipe)


def _streams(n: int, ramp: int) -> Round:
    return (Call(test=Experiment.STREAMS, arm=str(n), pair=ramp, recipe=_PROSE),) * n


def _prefix(arm: str, pair: int, seed: int, tokens: int) -> Call:
    recipe = Recipe(name="warm-prefix", prompt=Prompt.PREFIX, prompt_tokens=tokens, output_tokens=16, paired=True, prefix=seed)
    return Call(test=Experiment.CACHE, arm=arm, pair=pair, recipe=recipe)
