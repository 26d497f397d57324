"""Everything that Apprise reaches: Slack, Discord, PagerDuty, e-mail, Teams, and a hundred more, by their URLs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from app.alerts.answer import Answer
from app.alerts.threads import in_thread
from app.errors import ForbiddenError
from app.targets.model import Channel
from app.verdict.outbox import Announcement

HANGING = 4
"""Calls of one channel that may hang at once; more would only pile up."""

HOSTED = frozenset({"discord", "gchat", "opsgenie", "pagerduty", "pbul", "pover", "slack", "tgram", "wxteams"})
"""Services whose host Apprise fixes itself. Apprise's connections cannot be guarded, so a channel made by the API, which could
name any host, may use these only.
"""

_EMBLEM = {
    "incident.opened": "failure",
    "incident.updated": "warning",
    "incident.reminder": "warning",
    "incident.resolved": "success",
}


@dataclass(slots=True, kw_only=True)
class Notifier:
    """Sends through Apprise, each call in a thread of its own: Apprise blocks, and some of its services hang."""

    _places: dict[str, threading.BoundedSemaphore] = field(default_factory=dict)

    async def send(self, channel: Channel, urls: Sequence[str], message: Announcement) -> Answer:
        """One attempt. The URL is a secret: it is in no answer and no log.

        Raises:
            ForbiddenError: the channel was made by the API and names a host of its own.
        """
        if channel.origin == "api" and not all(urlsplit(url).scheme.lower() in HOSTED for url in urls):
            raise ForbiddenError(f"a channel made by the API may use Apprise for {', '.join(sorted(HOSTED))} only")
        places = self._places.setdefault(channel.name, threading.BoundedSemaphore(HANGING))
        if not places.acquire(blocking=False):
            return Answer(ok=False, text=f"{HANGING} earlier calls of this channel have not returned yet")

        def call() -> Answer:
            try:
                return _notify(channel.name, urls, title=title_of(message.body), body=text_of(message.body), kind=message.type)
            finally:
                places.release()

        return await in_thread(call)


def _notify(name: str, urls: Sequence[str], *, title: str, body: str, kind: str) -> Answer:
    import apprise  # 15 MB of code that most installations never need

    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # its log lines hold the URL
    sender = apprise.Apprise()
    try:
        if not all(sender.add(url) for url in urls):
            return Answer(ok=False, text=f"the URL of channel '{name}' is none that Apprise understands")
        sent = bool(sender.notify(title=title, body=body, notify_type=_EMBLEM.get(kind, "info")))
    except Exception as error:  # noqa: BLE001 - a hundred services raise what they like, with the URL in the text
        return Answer(ok=False, text=f"Apprise failed with {type(error).__name__}")
    return Answer(ok=sent, text="sent" if sent else "the service did not take it")


def title_of(body: Mapping[str, Any]) -> str:
    """`[critical] groq/gpt-oss-120b: below expectation, opened`, as a person scans it."""
    incident = body.get("data", {}).get("incident")
    what = str(body.get("type", "")).removeprefix("incident.").replace(".", " ")
    if not incident:
        return f"Bandwatch: {what}"
    if group := body["data"].get("group"):
        return f"[{incident['severity']}] {group['provider']}: {group['size']} incidents, {what}"
    return f"[{incident['severity']}] {incident['target']}: {str(incident['rule']).replace('_', ' ')}, {what}"


def text_of(body: Mapping[str, Any]) -> str:
    """The summary, the verdict in words, and where to read on."""
    data = body.get("data", {})
    verdict, links = data.get("verdict") or {}, data.get("links") or {}
    explanation = None if data.get("group") else verdict.get("explanation")
    lines = [data.get("summary"), explanation, links.get("incident")]
    return "\n".join(dict.fromkeys(str(line) for line in lines if line)) or title_of(body)
