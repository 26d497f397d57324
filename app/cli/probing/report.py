"""What came of the probes: the JSON of the contract, the summary, and the verdict where a deployment is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from statistics import median
from typing import Any

from app.expectation.body import expectation_json
from app.expectation.model import Expectation
from app.measurement.model import Measurement, Outcome, Reading
from app.measurement.recording import Recording
from app.measurement.window import Sample
from app.targets.model import Config, Target
from app.verdict.body import verdict_json
from app.verdict.judge import judge
from app.verdict.model import Trail, Verdict
from app.verdict.outbox import Past
from app.verdict.statistics import percentile_95


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A number of probes of one target."""

    target: Target
    done: Sequence[tuple[Recording, Reading]]
    expectation: Expectation | None
    verdict: Verdict | None

    @property
    def runs(self) -> list[Measurement]:
        """The measurements, in the order in which they were made."""
        return [reading.measurement for _, reading in self.done]

    @property
    def failed(self) -> int:
        """How many did not end well."""
        return sum(run.outcome is not Outcome.OK for run in self.runs)


def report(
    target: Target,
    done: Sequence[tuple[Recording, Reading]],
    *,
    config: Config,
    expectation: Expectation | None,
    now: datetime,
) -> Report:
    """Put together what a target's probes say; judged as the service would, where its deployment is known."""
    verdict = None
    if done and target.deployment is not None:
        past = Past(
            samples=tuple(_sample(recording, reading.measurement) for recording, reading in done),
            baseline=(),
            previous=None,
            trail=Trail(),
            open_incidents=(),
            locations={},
        )
        verdict = judge(
            target=target,
            location="here",
            past=past,
            expectation=expectation,
            thresholds=config.thresholds,
            fit_for=config.fit_for,
            now=now,
        )
    return Report(target=target, done=tuple(done), expectation=expectation, verdict=verdict)


def report_json(found: Report) -> dict[str, Any]:
    """The object of `bandwatch probe --json`."""
    return {
        "base_url": found.target.provider.base_url,
        "model": found.target.model,
        "recipe": found.target.recipe.name,
        "runs": [_run(run) for run in found.runs],
        "summary": summary(found),
        "expectation": None if found.expectation is None else expectation_json(found.expectation),
        "verdict": None if found.verdict is None else verdict_json(found.verdict),
    }


def summary(found: Report) -> dict[str, Any]:
    """Counts, and of each figure the median and 95th percentile of its reliable values; null where they are too few."""
    ok = [run for run in found.runs if run.outcome is Outcome.OK]
    timed = [run for run in ok if run.reliable.ttft]
    paced = [run for run in ok if run.reliable.tps]
    return {
        "ok": len(ok),
        "failed": found.failed,
        "ttft_s": _spread([run.ttft_s for run in timed]),
        "decode_tps": _spread([run.decode_tps for run in paced]),
        "tpot_s": _spread([run.tpot_s for run in paced]),
        "e2e_s": _spread([run.e2e_s for run in ok]),
        "output_tokens": sum(run.output_tokens or 0 for run in ok),
    }


def _spread(values: Sequence[float | None]) -> dict[str, float | int | None]:
    known = sorted(value for value in values if value is not None)
    return {
        "p50": median(known) if known else None,
        "p95": percentile_95(known),
        "min": known[0] if known else None,
        "max": known[-1] if known else None,
        "n": len(known),
    }


def _run(m: Measurement) -> dict[str, Any]:
    found = asdict(m)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}


def _sample(recording: Recording, m: Measurement) -> Sample:
    return Sample(
        started_at=recording.started_at,
        outcome=m.outcome,
        connection=m.connection,
        error_class=m.error_class,
        ttft_s=m.ttft_s,
        ttft_reliable=m.reliable.ttft,
        decode_tps=m.decode_tps,
        tps_reliable=m.reliable.tps,
        e2e_s=m.e2e_s,
        connect_s=m.phases.connect_s,
        tls_s=m.phases.tls_s,
        output_tokens=m.output_tokens,
        notes=m.notes,
    )
