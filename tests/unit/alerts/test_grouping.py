"""Many incidents of one provider are one message, which is the gravest one's and tells of all."""

import json
from typing import Any

from app.alerts.grouping import LISTED, join
from app.alerts.notify import text_of, title_of


def body(number: int, *, severity: str = "warning", rule: str = "unavailable", kind: str = "incident.opened") -> dict[str, Any]:
    incident = {
        "id": f"i{number:03}", "target": f"groq/m{number}", "provider": "groq", "model": f"m{number}", "location": "default",
        "rule": rule, "severity": severity, "state": "open", "opened_at": f"2026-01-01T00:00:{number % 60:02}.000Z",
        "resolved_at": None, "acknowledged_at": None, "summary": "s",
    }  # fmt: skip
    return {
        "type": kind,
        "timestamp": f"2026-01-01T00:01:{number % 60:02}.000Z",
        "data": {"incident": incident, "verdict": {"explanation": f"because {number}"}, "summary": "s", "links": {"incident": f"u{number}"}},
    }  # fmt: skip


def test_thirty_are_one_with_the_contracts_keys_of_the_gravest_and_oldest() -> None:
    joined = join([*(body(n) for n in range(27)), body(28, severity="critical"), body(27, severity="critical"), body(29)])
    assert joined["type"] == "incident.opened"
    assert joined["timestamp"] == "2026-01-01T00:01:29.000Z"
    data = joined["data"]
    assert data["incident"]["id"] == "i027"
    assert data["verdict"] == {"explanation": "because 27"}
    assert data["links"] == {"incident": "u27"}
    assert data["group"] == {"provider": "groq", "size": 30}
    assert [each["id"] for each in data["incidents"]][:2] == ["i000", "i001"]
    assert len(data["incidents"]) == 30


def test_its_sentence_says_what_how_often_and_to_whom() -> None:
    joined = join([*(body(n) for n in range(5)), *(body(n, rule="slow_first_token") for n in range(5, 7))])
    assert joined["data"]["summary"] == (
        "groq: 7 incidents opened (5 unavailable, 2 slow first token): groq/m0, groq/m1, groq/m2, groq/m3, groq/m4 and 2 more."
    )
    reminder = join([body(0, kind="incident.reminder"), body(1, kind="incident.reminder")])
    assert reminder["data"]["summary"] == "groq: 2 incidents are still open (2 unavailable): groq/m0, groq/m1."
    ended = join([body(0, kind="incident.resolved"), body(1, kind="incident.resolved")])
    assert ended["data"]["summary"] == "groq: 2 incidents resolved (2 unavailable): groq/m0, groq/m1."


def test_a_message_stays_small_and_counts_all() -> None:
    joined = join([body(n) for n in range(500)])
    assert joined["data"]["group"]["size"] == 500
    assert len(joined["data"]["incidents"]) == LISTED
    assert len(json.dumps(joined)) < 65536


def test_people_read_it_in_a_chat_as_one_message() -> None:
    joined = join([body(n) for n in range(6)])
    assert title_of(joined) == "[warning] groq: 6 incidents, opened"
    assert text_of(joined) == f"{joined['data']['summary']}\nu0"
