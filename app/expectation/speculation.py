"""Speculative decoding: what it can bring. Leviathan et al., arXiv 2211.17192."""

from __future__ import annotations

from dataclasses import dataclass

from app.errors import UsageError
from app.expectation.constants import DRAFT_COST


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """alpha: acceptance probability; gamma: draft length; cost: of one draft token against a target step."""

    alpha: float
    gamma: int
    cost: float = DRAFT_COST

    @property
    def tokens_per_step(self) -> float:
        """E = (1 - a^(g+1)) / (1 - a)."""
        if self.alpha == 1.0:
            return self.gamma + 1.0
        return float((1 - self.alpha ** (self.gamma + 1)) / (1 - self.alpha))

    @property
    def speedup(self) -> float:
        """E / (g c + 1)."""
        return self.tokens_per_step / (self.gamma * self.cost + 1)


def parse_speculation(text: str) -> Speculation | None:
    """`alpha,gamma[,cost]`; None for `unknown`, `off` and `on`.

    Raises:
        UsageError: saying how it is written.
    """
    if text.strip().lower() in {"unknown", "off", "on", "none", ""}:
        return None
    try:
        alpha, gamma, *rest = (part.strip() for part in text.split(","))
        found = Speculation(alpha=float(alpha), gamma=int(gamma), cost=float(rest[0]) if rest else DRAFT_COST)
    except ValueError as error:
        raise UsageError(f"speculation {text!r}: write alpha,gamma[,cost], such as 0.7,3,0.1") from error
    if not 0 <= found.alpha <= 1 or not 1 <= found.gamma <= 64 or not 0 <= found.cost <= 2 or len(rest) > 1:
        raise UsageError(f"speculation {text!r}: alpha lies in 0..1, gamma in 1..64, cost in 0..2")
    return found
