"""Alertmanager: alerts posted to every peer, since peers share silences and notifications but not alerts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import httpx2

from app.alerts.answer import FAILURES, Answer, post, to_json
from app.verdict.body import rfc3339

FIRING_S = 240.0
"""A firing alert ends by itself after this long without being posted again: four rounds of a minute."""
PEER_S = 8.0
"""The longest that one peer is waited for; less than an attempt, so that a hanging peer does not hide another's yes."""

_LABELS = ("target", "provider", "model", "location", "rule", "severity")
_OTHER = {"warning": "critical", "critical": "warning"}


def alerts_of(body: Mapping[str, Any], *, now: datetime) -> list[dict[str, Any]]:
    """The Alertmanager alerts of a webhook body: one; and, when the severity changed, the end of the one it had before.

    Labels are an alert's identity: severity is among them because routes go by it, figures are annotations because each
    change would be a new alert. Firing ends in the near future unless posted again; resolved ended when the incident did.
    """
    incident = body.get("data", {}).get("incident") or {}
    if incident.get("state") == "resolved":
        return [_alert(body, incident, ends=str(incident["resolved_at"]))]
    alerts = [_alert(body, incident, ends=rfc3339(now + timedelta(seconds=FIRING_S)))]
    if body.get("type") == "incident.updated":
        before = {**incident, "severity": _OTHER.get(str(incident.get("severity")), "warning")}
        alerts.append(_alert(body, before, ends=str(body["timestamp"])))
    return alerts


def _alert(body: Mapping[str, Any], incident: Mapping[str, Any], *, ends: str) -> dict[str, Any]:
    data = body.get("data", {})
    verdict, links = data.get("verdict") or {}, data.get("links") or {}
    rule = str(incident.get("rule", "test"))
    told = {"summary": data.get("summary"), "description": verdict.get("explanation"), "incident": incident.get("id")}
    return {
        "labels": {
            "alertname": "Bandwatch" + "".join(part.capitalize() for part in rule.split("_")),
            "source": "bandwatch",
            **{name: str(incident[name]) for name in _LABELS if incident.get(name)},
        },
        "annotations": {name: str(value) for name, value in told.items() if value},
        "startsAt": incident.get("opened_at") or body["timestamp"],
        "endsAt": ends,
        **({"generatorURL": links["incident"]} if links.get("incident") else {}),
    }


async def send_alertmanager(
    client: httpx2.AsyncClient,
    peers: Sequence[str],
    bodies: Sequence[Mapping[str, Any]],
    *,
    now: datetime,
    peer_s: float = PEER_S,
) -> Answer:
    """Post to all peers at once. One yes is an arrival: whoever missed it is told again within the minute."""
    content = to_json([alert for body in bodies for alert in alerts_of(body, now=now)])
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_to_peer(client, peer, content, peer_s=peer_s)) for peer in peers]
    answers = [each.result() for each in asked]
    best = next((answer for answer in answers if answer.ok), answers[0])
    bad = "; ".join(
        " ".join(word for word in (f"peer {number}:", str(answer.status or ""), answer.text) if word)
        for number, answer in enumerate(answers, start=1)
        if not answer.ok
    )
    return Answer(ok=best.ok, status=best.status, text=bad or best.text, retry_after=best.retry_after)


async def _to_peer(client: httpx2.AsyncClient, peer: str, content: bytes, *, peer_s: float) -> Answer:
    try:
        async with asyncio.timeout(peer_s):
            return await post(client, f"{peer.rstrip('/')}/api/v2/alerts", content, {})
    except TimeoutError:
        return Answer(ok=False, text=f"no answer within {peer_s:g} s")
    except FAILURES as error:
        return Answer(ok=False, text=f"{type(error).__name__}: {error}")
