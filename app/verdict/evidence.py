"""What one window of one location holds: the figures that may be judged, and who is to blame for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from app.measurement.model import AGAINST_PROVIDER, Outcome
from app.measurement.window import Sample
from app.targets.model import Connection

SPENT = "budget_spent_on_reasoning"
_KINDS: Mapping[Outcome, str] = {
    Outcome.AUTH: "auth",
    Outcome.NOT_FOUND: "not_found",
    Outcome.BAD_REQUEST: "bad_request",
    Outcome.RATE_LIMITED: "rate_limited",
    Outcome.CONTENT_FILTER: "content_filter",
    Outcome.SKIPPED_BUDGET: "skipped_budget",
    Outcome.LOCAL_ERROR: "local_error",
}


def kind_of(sample: Sample) -> str:
    """`ok`, `against` the provider, or the kind that is not the provider's fault (`quota` and `budget` among them).

    Tokens that were billed without any output went into hidden reasoning: the recipe's output was too short for the model.
    """
    if sample.outcome is Outcome.OK:
        return "ok"
    if sample.outcome is Outcome.EMPTY and (SPENT in sample.notes or (sample.output_tokens or 0) > 0):
        return "budget"
    if sample.outcome in AGAINST_PROVIDER:
        return "against"
    if sample.outcome is Outcome.RATE_LIMITED and sample.error_class == "quota":
        return "quota"
    return _KINDS[sample.outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A window, sorted out. Speeds in tokens per second and times in seconds are ascending; the order of samples is lost."""

    speeds: tuple[float, ...] = ()
    ttfts: tuple[float, ...] = ()
    round_trips: tuple[float, ...] = ()
    kinds: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    """Error classes of runs that count against the provider, most frequent first."""
    contaminated: int = 0
    unreliable: int = 0
    newest: datetime | None = None

    @property
    def ok(self) -> int:
        """Runs that went well."""
        return self.kinds.get("ok", 0)

    @property
    def against(self) -> int:
        """Runs that count against the provider's availability."""
        return self.kinds.get("against", 0)

    @property
    def attempts(self) -> int:
        """Runs that tell of availability."""
        return self.ok + self.against


def gather(samples: Iterable[Sample], *, since: datetime, connection: Connection) -> Evidence:
    """The evidence of samples that started after `since`.

    Contaminated samples are out, of availability too: a late loop looks like a time-out. Figures of the other kind of
    connection are out, and unreliable ones.
    """
    fresh = [sample for sample in samples if sample.started_at > since]
    clean = [sample for sample in fresh if not sample.contaminated]
    good = [sample for sample in clean if sample.outcome is Outcome.OK and sample.connection is connection]
    kinds = Counter(map(kind_of, clean))
    errors = Counter(sample.error_class for sample in clean if kind_of(sample) == "against")
    speeds = [s.decode_tps for s in good if s.tps_reliable and s.decode_tps is not None]
    return Evidence(
        speeds=tuple(sorted(speeds)),
        ttfts=tuple(sorted(s.ttft_s for s in good if s.ttft_reliable and s.ttft_s is not None)),
        round_trips=tuple(sorted(s.connect_s for s in good if s.connect_s is not None)),
        kinds=dict(sorted(kinds.items())),
        errors=tuple(name for name, _ in sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
        contaminated=len(fresh) - len(clean),
        unreliable=len(good) - len(speeds),
        newest=max((sample.started_at for sample in fresh), default=None),
    )


Point = tuple[datetime, float]
"""When a figure was measured, and the figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Older samples of a target, of which those that may be judged make a baseline."""

    samples: tuple[Sample, ...]
    connection: Connection

    def speeds(self) -> tuple[Point, ...]:
        """Decode TPS."""
        return tuple((s.started_at, s.decode_tps) for s in self.samples if s.decode_tps and s.tps_reliable and self._counts(s))

    def first_tokens(self) -> tuple[Point, ...]:
        """TTFT in seconds."""
        return tuple((s.started_at, s.ttft_s) for s in self.samples if s.ttft_s and s.ttft_reliable and self._counts(s))

    def _counts(self, sample: Sample) -> bool:
        return sample.outcome is Outcome.OK and sample.connection is self.connection and not sample.contaminated
