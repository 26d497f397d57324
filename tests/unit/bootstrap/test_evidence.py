"""Which recordings are kept, and what a call costs."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from app.bootstrap.evidence import FLAGGED_EVERY_S, Evidence, Tariff
from app.catalog.prices import load_prices
from app.clock import FakeClock
from app.measurement.evidence import decode
from app.measurement.measure import measure
from app.measurement.recording import FailureKind, Recording
from app.targets.model import Budget, Provider
from tests.support.recordings import recording
from tests.support.runs import NOW, target
from tests.support.scenarios import BASE, CUT


class Keeping:
    def __init__(self) -> None:
        self.clock = FakeClock(wall=NOW)
        self.flags: set[str] = set()
        self.evidence = Evidence(flagged=self.flags.__contains__, clock=self.clock)

    def kept(self, made: Recording, name: str = "p/m") -> bool:
        found = self.evidence.keep(target(name), made, measure(made))
        assert found is None or decode(found).tape.body == made.tape.body
        return found is not None


def test_failed_runs_are_kept_every_time_and_good_ones_the_first_time() -> None:
    keeping = Keeping()
    good, bad = recording(BASE), recording(CUT)
    assert [keeping.kept(good), keeping.kept(good), keeping.kept(bad), keeping.kept(bad)] == [True, False, True, True]
    assert keeping.kept(good, "p/other")


def test_a_new_kind_of_doubt_is_new() -> None:
    keeping = Keeping()
    late = recording([(600, b"".join(raw for _, raw in BASE))])
    assert [keeping.kept(recording(BASE)), keeping.kept(late), keeping.kept(late)] == [True, True, False]


def test_failures_without_a_body_and_our_own_are_kept_once() -> None:
    keeping = Keeping()
    for kind in (FailureKind.CONNECT, FailureKind.LOCAL):
        made = recording([], failure=kind)
        assert [keeping.kept(made), keeping.kept(made)] == [True, False]


def test_a_flagged_target_keeps_one_every_ten_minutes() -> None:
    keeping = Keeping()
    good = recording(BASE)
    keeping.kept(good)
    keeping.flags.add("p/m")
    assert [keeping.kept(good), keeping.kept(good)] == [True, False]
    keeping.clock.advance(FLAGGED_EVERY_S)
    assert [keeping.kept(good), keeping.kept(good)] == [True, False]
    keeping.flags.clear()
    assert not keeping.kept(good)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.bootstrap.evidence.KINDS", 2)
    keeping = Keeping()
    assert [keeping.kept(recording(BASE), name) for name in ("a", "b", "c", "a")] == [True] * 4


def test_a_call_costs_what_the_list_says_for_the_dialect_or_the_provider() -> None:
    tariff = Tariff(prices=load_prices())
    at = replace(target(), model="openai/gpt-oss-120b")
    groq = replace(at, provider=Provider(name="fast", base_url="https://api.groq.com/openai/v1"))
    assert tariff.usd(groq, 1_000_000, 1_000_000) == pytest.approx(0.75)
    named = replace(at, provider=Provider(name="groq", base_url="https://proxy.example.net/v1"))
    assert tariff.usd(named, 60, 128) == pytest.approx(60 * 0.15e-6 + 128 * 0.6e-6)
    assert tariff.usd(at, 60, 128) is None


def test_a_budget_in_usd_without_a_price_is_said_once() -> None:
    tariff = Tariff(prices={})
    limited = target(budget=Budget(usd_per_day=1.0))
    with capture_logs() as said:
        assert [tariff.usd(limited, 1, 1), tariff.usd(limited, 1, 1), tariff.usd(target("p/free"), 1, 1)] == [None] * 3
    assert [(entry["event"], entry["target"]) for entry in said] == [("price_unknown", "p/m")]
