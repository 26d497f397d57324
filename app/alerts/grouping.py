"""Many announcements of one provider as one message: what happened, how often, and to whom. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

LISTED = 100
"""The most incidents that a message lists; `group.size` counts all."""
NAMED = 5
"""The most targets that its sentence names."""
_VERBS = {
    "incident.opened": "opened",
    "incident.updated": "changed",
    "incident.reminder": "are still open",
    "incident.resolved": "resolved",
}
_LISTED_KEYS = ("id", "target", "model", "location", "rule", "severity", "state", "opened_at", "resolved_at", "summary")


def join(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One body of many of the same type and provider: as the contract has it, of the gravest and oldest incident, with
    `data.group` (provider, size) and `data.incidents` beside it.
    """
    lead = min(bodies, key=_grave)
    incidents = [body["data"]["incident"] for body in bodies]
    provider = str(lead["data"]["incident"]["provider"])
    return {
        **lead,
        "timestamp": max(str(body["timestamp"]) for body in bodies),
        "data": {
            **lead["data"],
            "summary": _sentence(provider, str(lead["type"]), incidents),
            "group": {"provider": provider, "size": len(bodies)},
            "incidents": [{key: each.get(key) for key in _LISTED_KEYS} for each in incidents[:LISTED]],
        },
    }


def _grave(body: Mapping[str, Any]) -> tuple[bool, str, str]:
    incident = body["data"]["incident"]
    return incident["severity"] != "critical", str(incident["opened_at"]), str(incident["id"])


def _sentence(provider: str, kind: str, incidents: Sequence[Mapping[str, Any]]) -> str:
    """What happened, how often, to whom: `groq: 30 incidents opened (30 unavailable): groq/a, groq/b and 28 more`."""
    rules = Counter(str(each["rule"]).replace("_", " ") for each in incidents)
    what = ", ".join(f"{n} {rule}" for rule, n in sorted(rules.items(), key=lambda item: (-item[1], item[0])))
    targets = list(dict.fromkeys(str(each["target"]) for each in incidents))
    more = f" and {len(targets) - NAMED} more" if len(targets) > NAMED else ""
    return f"{provider}: {len(incidents)} incidents {_VERBS.get(kind, kind)} ({what}): {', '.join(targets[:NAMED])}{more}."
