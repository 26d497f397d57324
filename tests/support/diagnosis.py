"""Trials by hand: a provider of which every figure is stated."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from app.verdict.diagnosis.course import Question, diagnosis
from app.verdict.diagnosis.model import Call, Diagnosis, Experiment, Trial

Answer = Callable[[Call, int], Trial]
"""A call, and how many others begin with it -> what came of it."""


def a_trial(call: Call, *, tps: float = 100.0, ttft_s: float = 0.2, **changes: Any) -> Trial:
    """Even gaps of one token each, 20 ms of round trip."""
    count = 20
    known: dict[str, Any] = {
        "outcome": "ok", "tokens_used": call.tokens, "ttft_s": ttft_s, "tps": tps, "prompt_tokens": call.recipe.prompt_tokens,
        "connect_s": 0.02, "stamps_s": tuple(ttft_s + i / tps for i in range(count)), "tokens": (1.0,) * count,
    }  # fmt: skip
    return Trial(test=call.test, arm=call.arm, pair=call.pair, **{**known, **changes})


class Provider:
    """Answers calls by stated figures with a little noise; keeps every call that was made."""

    def __init__(self, *, noise: float = 0.01, **figures: float) -> None:
        self.figures = {
            "tps": 100.0,
            "code": 1.0,
            "start_s": 0.1,
            "token_s": 20e-6,
            "warm": 0.0,
            "four": 1.0,
            "rtt_s": 0.02,
        } | figures
        self.noise, self.chance, self.calls = noise, Random(3), list[Call]()
        self.seen: set[int] = set()

    def answer(self, call: Call, others: int) -> Trial:
        self.calls.append(call)
        f, factor = self.figures, 1 + self.noise * self.chance.uniform(-1, 1)
        tps = f["tps"] * (f["code"] if call.arm == "code" else 1.0) / (1 + (f["four"] - 1) * others / 3) * factor
        fresh = call.recipe.prompt_tokens * (1 - f["warm"] if call.recipe.prefix in self.seen else 1.0)
        if call.recipe.prefix is not None:
            self.seen.add(call.recipe.prefix)
        ttft = f["rtt_s"] + f["start_s"] * factor + f["token_s"] * fresh
        return a_trial(call, tps=tps, ttft_s=ttft, connect_s=f["rtt_s"])


def told_by(answer: Answer, **question: Any) -> Diagnosis:
    """The whole diagnosis."""
    steps = diagnosis(Question(**{"target": "groq/gpt", "seed": 5, **question}))
    trials: Sequence[Trial] | None = None
    while True:
        try:
            step = steps.send(trials)  # type: ignore[arg-type]  # None begins it
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # the generator's return
        trials = [answer(call, len(step.round) - 1) for call in step.round]


def results_of(told: Diagnosis) -> dict[str, Any]:
    """Test -> its result."""
    return {result.test: result for result in told.results}


ALL = tuple(Experiment)
