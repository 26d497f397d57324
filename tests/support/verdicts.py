"""Targets, samples and pasts for tests of the verdict room."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from app.expectation.model import Basis, Confidence, Expectation
from app.measurement.model import Outcome
from app.measurement.window import Sample
from app.targets.model import FitFor, Provider, Recipe, Target, Thresholds
from app.verdict.judge import judge
from app.verdict.model import Severity, State, Trail, Verdict
from app.verdict.outbox import Past

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def a_target(**changes: Any) -> Target:
    known: dict[str, Any] = {
        "name": "groq/gpt", "provider": Provider(name="groq", base_url="https://x.example/v1"), "model": "gpt",
        "every_s": 60.0, "recipe": Recipe(name="chat-short"),
    }  # fmt: skip
    return Target(**{**known, **changes})


def a_sample(tps: float | None = 100.0, *, ago_s: float = 30.0, **changes: Any) -> Sample:
    known: dict[str, Any] = {
        "started_at": NOW - timedelta(seconds=ago_s), "outcome": Outcome.OK, "decode_tps": tps, "tps_reliable": tps is not None,
        "ttft_s": 0.2, "ttft_reliable": True, "connect_s": 0.01,
    }  # fmt: skip
    return Sample(**{**known, **changes})


def failures(n: int, outcome: Outcome = Outcome.TIMEOUT, **changes: Any) -> tuple[Sample, ...]:
    known: dict[str, Any] = {"outcome": outcome, "ttft_s": None, "ttft_reliable": False, "error_class": "timeout"}
    return tuple(a_sample(None, ago_s=20 + i, **{**known, **changes}) for i in range(n))


def speeds(*values: float, **changes: Any) -> tuple[Sample, ...]:
    return tuple(a_sample(value, ago_s=30 + 10 * index, **changes) for index, value in enumerate(values))


def a_past(samples: Iterable[Sample] = (), **changes: Any) -> Past:
    known: dict[str, Any] = {
        "samples": tuple(samples), "baseline": (), "previous": None, "trail": Trail(), "open_incidents": (), "locations": {},
    }  # fmt: skip
    return Past(**{**known, **changes})


def an_expectation(expected: float | None = 100.0, **changes: Any) -> Expectation:
    known: dict[str, Any] = {
        "basis": Basis.DEPLOYMENT, "confidence": Confidence.HIGH, "expected_tps": expected,
        "ceiling_tps": None if expected is None else 2 * expected, "model_spec": "llama", "hardware": "H100", "devices": 1,
        "assumptions": ("context 2048",), "prefill_s": (0.01, 0.05),
    }  # fmt: skip
    return Expectation(**{**known, **changes})


def verdict_of(
    samples: Iterable[Sample] = (),
    *,
    expectation: Expectation | None = None,
    target: Target | None = None,
    thresholds: Thresholds | None = None,
    past: Mapping[str, Any] | None = None,
    now: datetime = NOW,
    min_locations: int = 1,
) -> Verdict:
    return judge(
        target=target or a_target(), location="default", past=a_past(samples, **(past or {})), expectation=expectation,
        thresholds=thresholds or Thresholds(), fit_for=FitFor(), now=now, min_locations=min_locations,
    )  # fmt: skip


def said(state: State | str, severity: Severity | str = Severity.NONE, *, at: datetime = NOW) -> Verdict:
    return Verdict(
        target="groq/gpt", location="default", state=State(state), severity=Severity(severity), since=at, checked_at=at
    )
