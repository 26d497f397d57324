"""Which recordings are kept as evidence, and what a call costs: the two answers that a worker asks of its process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from app.catalog.prices import Prices, usd
from app.clock import Clock
from app.measurement.dialects import dialect_for
from app.measurement.evidence import encode
from app.measurement.model import Outcome, Reading
from app.measurement.recording import Recording
from app.targets.model import Target

log = structlog.get_logger()

OURS = frozenset({Outcome.LOCAL_ERROR, Outcome.SKIPPED_BUDGET})
KINDS = 10_000
"""So many kinds of runs are remembered; then all are new again."""
FLAGGED_EVERY_S = 600.0

Kind = tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Keeps failed runs, the first of each kind, and every ten minutes one of a target that is flagged.

    A kind is a target, how its run ended, and what was doubtful of it. How many are kept of one target is the store's law.
    """

    flagged: Callable[[str], bool]
    clock: Clock
    _kinds: set[Kind] = field(default_factory=set)
    _kept_at: dict[str, int] = field(default_factory=dict)

    def keep(self, target: Target, recording: Recording, reading: Reading) -> bytes | None:
        """The file to keep, or None."""
        new = self._is_new(target, recording, reading)
        outcome = reading.measurement.outcome
        failed = outcome is not Outcome.OK and outcome not in OURS and bool(recording.tape.body)
        return encode(recording) if new or failed or self._due(target.name) else None

    def _is_new(self, target: Target, recording: Recording, reading: Reading) -> bool:
        m = reading.measurement
        doubts = (each for figure in sorted(m.unreliable_because) for each in m.unreliable_because[figure])
        kind = (target.name, m.outcome, m.error_class, m.connection, recording.dialect, *doubts)
        if len(self._kinds) >= KINDS:
            self._kinds.clear()
        known = kind in self._kinds
        self._kinds.add(kind)
        return not known

    def _due(self, name: str) -> bool:
        if not self.flagged(name):
            self._kept_at.pop(name, None)
            return False
        now, last = self.clock.monotonic_ns(), self._kept_at.get(name)
        due = last is None or now - last >= FLAGGED_EVERY_S * 1e9
        if due:
            self._kept_at[name] = now
        return due


@dataclass(slots=True, kw_only=True)
class Tariff:
    """What tokens cost at a target, by its dialect's list prices or by a row for the provider's own name."""

    prices: Prices
    _unpriced: set[str] = field(default_factory=set)

    def usd(self, target: Target, tokens_in: int, tokens_out: int) -> float | None:
        """USD of a call; None when no price is known, which is said once of a target with a budget in USD."""
        names = (target.provider.name, dialect_for(target.provider.base_url, name=target.provider.dialect).name)
        found = usd(self.prices, providers=names, model=target.model, tokens_in=tokens_in, tokens_out=tokens_out)
        limited = target.budget.usd_per_day is not None or target.provider.budget.usd_per_day is not None
        if found is None and limited and target.name not in self._unpriced:
            self._unpriced.add(target.name)
            log.warning("price_unknown", target=target.name, model=target.model, effect="its budget in USD cannot hold")
        return found
