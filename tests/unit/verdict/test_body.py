"""The JSON of verdicts and incidents is the contract's, and each change has a sentence a person can act on."""

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from app.expectation.model import Basis
from app.measurement.model import Outcome
from app.targets.policy import MatchIn
from app.verdict.advance import CONFIG_RULES
from app.verdict.body import RULE_WORDS, change_json, incident_json, links_json, rfc3339, summary, verdict_json
from app.verdict.model import Change, ChangeKind, Incident, IncidentState, Severity, State
from app.verdict.trail import STATE_RULES
from tests.support.verdicts import NOW, an_expectation, failures, said, speeds, verdict_of

RED = verdict_of(speeds(*[30.0] * 9), expectation=an_expectation())


def an_incident(rule: str = "below_expectation", **changes: object) -> Incident:
    known = Incident(
        id="i/1", target="groq/gpt", provider="groq", model="gpt", location="default", rule=rule, severity=Severity.CRITICAL,
        state=IncidentState.OPEN, opened_at=NOW - timedelta(minutes=12), updated_at=NOW, summary="…",
    )  # fmt: skip
    return replace(known, **changes)


def test_a_verdict_has_the_fields_of_the_contract() -> None:
    body = verdict_json(RED)
    assert set(body) >= {
        "target", "location", "state", "severity", "since", "observed", "expected", "ceiling", "ratio", "ceiling_ratio", "confidence",
        "samples", "window_s", "basis", "assumptions", "reasons", "explanation", "fit_for", "checked_at",
    }  # fmt: skip
    assert (body["state"], body["severity"], body["basis"], body["ratio"]) == (
        "below_expectation",
        "critical",
        "deployment",
        0.3,
    )
    assert body["observed_interval"] == [30.0, 30.0]
    assert body["since"] == "2026-12-01T12:00:00.000Z"
    assert json.loads(json.dumps(body)) == body
    empty = verdict_json(said("unknown"))
    assert (empty["observed"], empty["basis"], empty["observed_interval"]) == (None, None, None)


def test_an_incident_has_the_fields_of_the_contract() -> None:
    body = incident_json(an_incident(acknowledged_at=NOW))
    assert set(body) >= {
        "id", "target", "provider", "model", "location", "rule", "severity", "state", "opened_at", "resolved_at", "acknowledged_at",
    }  # fmt: skip
    assert (body["resolved_at"], body["acknowledged_at"]) == (None, "2026-12-01T12:00:00.000Z")
    assert json.loads(json.dumps(body)) == body


def test_a_change_is_a_webhook_body() -> None:
    change = Change(kind=ChangeKind.OPENED, incident=an_incident(), verdict=RED, at=NOW, summary="s")
    body = change_json(change, base_url="https://b.example")
    assert (body["type"], body["timestamp"]) == ("incident.opened", "2026-12-01T12:00:00.000Z")
    assert set(body["data"]) == {"incident", "verdict", "summary", "links"}
    assert body["data"]["links"] == {
        "incident": "https://b.example/incidents/i/1",
        "target": "https://b.example/targets/groq/gpt",
    }


def test_instants_are_utc_whatever_zone_they_come_in() -> None:
    there = datetime(2026, 12, 1, 2, 0, 0, 5600, tzinfo=timezone(timedelta(hours=2)))
    assert rfc3339(there) == "2026-12-01T00:00:00.005Z"


@pytest.mark.parametrize(
    ("kind", "incident", "verdict", "sentence"),
    [
        (ChangeKind.OPENED, an_incident(), RED, "groq/gpt from default generates slower than expected: 30 tokens/s, 100 expected."),
        (ChangeKind.OPENED, an_incident("auth"), said("unknown"), "groq/gpt from default refuses our key; check the key."),
        (ChangeKind.UPDATED, an_incident(severity=Severity.WARNING), RED, "groq/gpt from default generates slower than expected, now warning: 30 tokens/s, 100 expected."),
        (ChangeKind.REMINDER, an_incident(), said("unknown"), "groq/gpt from default still generates slower than expected after 12 min."),
        (ChangeKind.RESOLVED, an_incident(state=IncidentState.RESOLVED, resolved_at=NOW, resolve_reason="recovered"),
         verdict_of(speeds(*[90.0] * 9), expectation=an_expectation()),
         "groq/gpt from default recovered after 12 min (below expectation): now 90 tokens/s, 100 expected."),
        (ChangeKind.RESOLVED, an_incident(state=IncidentState.RESOLVED, resolve_reason="target_deleted"), RED,
         "groq/gpt from default: closed after 12 min (below expectation), target deleted."),
        (ChangeKind.OPENED, an_incident("unavailable"), verdict_of(failures(5)), "groq/gpt from default is failing (timeout)."),
        (ChangeKind.OPENED, an_incident("unavailable"), said("unknown"), "groq/gpt from default is failing."),
        (ChangeKind.OPENED, an_incident("slow_first_token"), RED, "groq/gpt from default is slow to its first token: 200 ms to the first token."),
        (ChangeKind.OPENED, an_incident("above_ceiling"), verdict_of(speeds(*[900.0] * 5), expectation=an_expectation()),
         "groq/gpt from default is faster than its declared deployment can be: 900 tokens/s, 200 at most."),
        (ChangeKind.OPENED, an_incident("regressed"), replace(RED, expected=None), "groq/gpt from default is slower than its own past: 30 tokens/s."),
        (ChangeKind.OPENED, an_incident("new_rule"), RED, "groq/gpt from default new_rule."),
    ],
)  # fmt: skip
def test_each_change_has_one_sentence(kind: ChangeKind, incident: Incident, verdict: object, sentence: str) -> None:
    assert summary(kind, incident, verdict) == sentence


def test_every_rule_has_words_and_can_be_matched_by_a_route() -> None:
    rules = {*map(str, STATE_RULES), *CONFIG_RULES, "monitor"}
    assert set(RULE_WORDS) == rules
    for rule in rules:
        assert MatchIn(rule=rule).rule == rule
    assert {str(state) for state in State} - {"ok", "unknown"} == set(map(str, STATE_RULES))
    assert Outcome.AUTH == "auth"
    assert Basis.SLO == "slo"


def test_the_monitors_own_incident_links_to_the_fleet_since_it_is_no_target() -> None:
    links = links_json(an_incident(target="bandwatch", provider="bandwatch", rule="monitor"), base_url="https://b")
    assert links == {"incident": "https://b/incidents/i/1", "target": "https://b/"}
