"""One attempt over each kind of channel: only 2xx is an arrival, nothing is followed, nothing hangs, nothing leaks."""

import asyncio
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from app.alerts.answer import Answer
from app.alerts.guard import Guard
from app.alerts.sending import Post
from app.alerts.signing import verify
from app.alerts.transport import Clients
from app.secrets import Redactor, Secrets
from app.targets.model import Channel, ChannelKind, SecretRef, SecretSource
from app.verdict.outbox import Announcement
from tests.support.receivers import Heard, Script, answer, cut, cut_after_status, drip, flood, garbage, hang, receiving

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # Apprise on Python 3.11 and 3.12

SECRETS = {"OLD": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "NEW": "a plain secret, 32 bytes of words"}
NOW = datetime.now(UTC)
INCIDENT = {
    "id": "i1",
    "target": "groq/x",
    "provider": "groq",
    "model": "m",
    "location": "default",
    "rule": "below_expectation",
    "severity": "critical",
    "state": "open",
    "opened_at": "2026-01-01T00:00:00.000Z",
}


def message(kind: str = "incident.opened", **incident: Any) -> Announcement:
    body = {
        "type": kind,
        "timestamp": "2026-01-01T00:05:00.000Z",
        "data": {
            "incident": {**INCIDENT, **incident},
            "verdict": None,
            "summary": "Grüße: it is slow.",
            "links": {"incident": "http://b/i1"},
        },
    }
    return Announcement(id="msg_1", channel="ops", type=kind, body=body, incident_id="i1", created_at=NOW)


def ref(name: str) -> SecretRef:
    return SecretRef(source=SecretSource.ENV, name=name)


def post(*, allow: Sequence[str] = (), attempt_s: float = 10.0, environ: dict[str, str] | None = None) -> Post:
    redactor = Redactor()
    secrets = Secrets(redactor, environ={**SECRETS, **(environ or {})})
    return Post(clients=Clients(guard=Guard(lambda: allow)), resolve=secrets.resolve, clean=redactor.clean, attempt_s=attempt_s)


def send(
    script: Script,
    *,
    kind: ChannelKind = ChannelKind.WEBHOOK,
    origin: Literal["file", "api"] = "file",
    secrets: tuple[str, ...] = (),
    allow: Sequence[str] = (),
    attempt_s: float = 10.0,
    told: Announcement | None = None,
) -> tuple[Answer, Heard]:
    async def main() -> tuple[Answer, Heard]:
        async with receiving(script) as heard:
            channel = Channel(name="ops", kind=kind, urls=(heard.url,), secrets=tuple(map(ref, secrets)), origin=origin)
            sender = post(allow=allow, attempt_s=attempt_s)
            try:
                return await sender.send(channel, told or message(), now=datetime.now(UTC)), heard
            finally:
                await sender.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("status", "ok"),
    [
        (200, True),
        (201, True),
        (202, True),
        (204, True),
        (301, False),
        (302, False),
        (307, False),
        (400, False),
        (401, False),
        (404, False),
        (429, False),
        (500, False),
        (503, False),
    ],
)
def test_2xx_is_an_arrival_and_nothing_else_is(status: int, *, ok: bool) -> None:
    got, heard = send(answer(status))
    assert (got.ok, got.status, got.gone) == (ok, status, False)
    assert len(heard.requests) == 1


def test_410_means_that_the_receiver_is_gone() -> None:
    got, _ = send(answer(410))
    assert got.gone
    assert not got.ok


def test_a_redirect_is_not_followed_not_even_to_the_receiver_itself() -> None:
    async def main() -> None:
        async with receiving(answer(200)) as other, receiving(answer(302, location=other.url)) as first:
            channel = Channel(name="ops", kind=ChannelKind.WEBHOOK, urls=(first.url,))
            sender = post()
            got = await sender.send(channel, message(), now=datetime.now(UTC))
            await sender.aclose()
            assert (got.ok, got.status, len(other.requests)) == (False, 302, 0)
            assert "redirect" in got.text

    asyncio.run(main())


def test_retry_after_is_taken_from_429_and_503_only() -> None:
    assert send(answer(429, retry_after="7"))[0].retry_after == "7"
    assert send(answer(503, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"))[0].retry_after == "Wed, 21 Oct 2026 07:28:00 GMT"
    assert send(answer(500, retry_after="7"))[0].retry_after is None


@pytest.mark.parametrize("script", [hang, drip])
def test_a_receiver_that_hangs_or_drips_costs_one_bounded_attempt(script: Script) -> None:
    began = time.monotonic()
    got, _ = send(script, attempt_s=0.3)
    assert time.monotonic() - began < 3.0
    assert (got.ok, got.status, got.text) == (False, None, "no answer within 0.3 s")


def test_of_an_endless_answer_only_the_start_is_read() -> None:
    got, _ = send(flood, attempt_s=5.0)
    assert got.ok
    assert len(got.text) <= 300


def test_a_line_that_dies_after_the_status_does_not_unmake_the_arrival() -> None:
    assert send(cut_after_status)[0].ok


@pytest.mark.parametrize("script", [cut, garbage])
def test_no_answer_is_a_failure_with_a_reason(script: Script) -> None:
    got, _ = send(script)
    assert (got.ok, got.status) == (False, None)
    assert "Error" in got.text


def test_a_port_where_nobody_listens_is_a_failure_with_a_reason() -> None:
    async def main() -> Answer:
        async with receiving(answer(200)) as heard:
            pass
        sender = post()
        got = await sender.send(
            Channel(name="o", kind=ChannelKind.WEBHOOK, urls=(heard.url,)), message(), now=datetime.now(UTC)
        )
        await sender.aclose()
        return got

    got = asyncio.run(main())
    assert not got.ok
    assert "ConnectError" in got.text


def test_both_secrets_of_a_rotation_verify_what_was_sent() -> None:
    _, heard = send(answer(200), secrets=("NEW", "OLD"))
    line, headers, body = heard.requests[0]
    assert line.startswith("POST / ")
    assert headers["webhook-id"] == "msg_1"
    assert headers["content-type"] == "application/json"
    assert json.loads(body) == message().body
    for name in ("NEW", "OLD"):
        assert verify(SECRETS[name], headers=headers, body=body.decode())
    assert not verify("another", headers=headers, body=body.decode())


def test_a_secret_that_is_missing_is_an_answer_that_names_the_reference_only() -> None:
    got, heard = send(answer(200), secrets=("ABSENT",))
    assert got.text == "SecretError: the secret ${env:ABSENT} is not set"
    assert heard.requests == []


def test_what_the_receiver_echoes_of_our_secret_is_not_kept() -> None:
    got, _ = send(answer(400, body=f"bad signature, expected key {SECRETS['NEW']}"), secrets=("NEW",))
    assert SECRETS["NEW"] not in got.text
    assert "bad signature" in got.text


def test_half_a_secret_at_the_cut_is_not_kept_either() -> None:
    secret = SECRETS["OLD"]
    got, _ = send(answer(400, body=" " * (4096 - 20) + secret), secrets=("OLD",))
    assert secret[:10] not in got.text


def test_a_channel_made_by_the_api_does_not_reach_this_machine_and_one_of_the_file_does() -> None:
    got, heard = send(answer(200), origin="api")
    assert not got.ok
    assert "ForbiddenError: connecting to 127.0.0.1 is not allowed" in got.text
    assert heard.requests == []
    assert send(answer(200), origin="file")[0].ok


def test_a_channel_made_by_the_api_reaches_an_allowed_network() -> None:
    assert send(answer(200), origin="api", allow=("127.0.0.0/8",))[0].ok


def test_cookies_of_a_receiver_are_not_sent_back() -> None:
    async def main() -> None:
        async with receiving(answer(200, set_cookie="a=b")) as heard:
            sender = post()
            channel = Channel(name="o", kind=ChannelKind.WEBHOOK, urls=(heard.url,))
            for _ in range(2):
                await sender.send(channel, message(), now=datetime.now(UTC))
            await sender.aclose()
            assert len(heard.requests) == 2
            assert all("cookie" not in headers for _, headers, _ in heard.requests)

    asyncio.run(main())


def test_alertmanager_gets_labels_that_are_identity_and_annotations_that_are_figures() -> None:
    _, heard = send(answer(200), kind=ChannelKind.ALERTMANAGER)
    line, _, body = heard.requests[0]
    (alert,) = json.loads(body)
    assert line.startswith("POST /api/v2/alerts ")
    assert alert["labels"] == {
        "alertname": "BandwatchBelowExpectation",
        "source": "bandwatch",
        "target": "groq/x",
        "provider": "groq",
        "model": "m",
        "location": "default",
        "rule": "below_expectation",
        "severity": "critical",
    }
    assert alert["annotations"] == {"summary": "Grüße: it is slow.", "incident": "i1"}
    assert alert["startsAt"] == INCIDENT["opened_at"]
    assert datetime.fromisoformat(alert["endsAt"]) > NOW


def test_a_change_of_severity_ends_the_alert_that_it_replaces() -> None:
    _, heard = send(answer(200), kind=ChannelKind.ALERTMANAGER, told=message("incident.updated", severity="warning"))
    now, before = json.loads(heard.requests[0][2])
    assert (now["labels"]["severity"], before["labels"]["severity"]) == ("warning", "critical")
    assert before["endsAt"] == "2026-01-01T00:05:00.000Z"


def test_a_resolved_incident_ends_when_it_ended() -> None:
    told = message("incident.resolved", state="resolved", resolved_at="2026-01-01T00:04:00.000Z")
    _, heard = send(answer(200), kind=ChannelKind.ALERTMANAGER, told=told)
    (alert,) = json.loads(heard.requests[0][2])
    assert alert["endsAt"] == "2026-01-01T00:04:00.000Z"


def test_all_peers_are_posted_to_and_one_yes_is_an_arrival() -> None:
    async def main() -> None:
        async with receiving(answer(500, body="no")) as bad, receiving(answer(200)) as good, receiving(cut) as dead:
            channel = Channel(name="am", kind=ChannelKind.ALERTMANAGER, urls=(bad.url, good.url + "/", dead.url))
            sender = post()
            got = await sender.send(channel, message(), now=datetime.now(UTC))
            await sender.aclose()
            assert [len(peer.requests) for peer in (bad, good, dead)] == [1, 1, 1]
            assert (got.ok, got.status) == (True, 200)
            assert "peer 1: 500 no" in got.text

    asyncio.run(main())


def test_when_no_peer_takes_it_it_has_not_arrived() -> None:
    assert not send(answer(503, retry_after="5"), kind=ChannelKind.ALERTMANAGER)[0].ok


def apprise(url_of: str, *, environ: dict[str, str] | None = None, attempt_s: float = 10.0) -> Answer:
    async def main() -> Answer:
        sender = post(environ=environ, attempt_s=attempt_s)
        got = await sender.send(
            Channel(name="chat", kind=ChannelKind.APPRISE, urls=(ref(url_of),)), message(), now=datetime.now(UTC)
        )
        await sender.aclose()
        return got

    return asyncio.run(main())


def test_apprise_delivers_title_and_summary() -> None:
    async def main() -> None:
        async with receiving(answer(200)) as heard:
            sender = post(environ={"URL": heard.url.replace("http", "json") + "/hook"})
            got = await sender.send(
                Channel(name="chat", kind=ChannelKind.APPRISE, urls=(ref("URL"),)), message(), now=datetime.now(UTC)
            )
            await sender.aclose()
            assert got == Answer(ok=True, text="sent")
            sent = json.loads(heard.requests[0][2])
            assert sent["title"] == "[critical] groq/x: below expectation, opened"
            assert "it is slow." in sent["message"]
            assert "http://b/i1" in sent["message"]

    asyncio.run(main())


def test_apprise_says_when_the_service_did_not_take_it() -> None:
    async def main() -> None:
        async with receiving(answer(500)) as heard:
            sender = post(environ={"URL": heard.url.replace("http", "json")})
            got = await sender.send(
                Channel(name="chat", kind=ChannelKind.APPRISE, urls=(ref("URL"),)), message(), now=datetime.now(UTC)
            )
            await sender.aclose()
            assert got == Answer(ok=False, text="the service did not take it")

    asyncio.run(main())


def test_an_apprise_url_that_nobody_understands_is_refused_without_showing_it() -> None:
    got = apprise("URL", environ={"URL": "nonsense://canary-9f3a"})
    assert "none that Apprise understands" in got.text
    assert "canary" not in got.text


def test_an_apprise_channel_made_by_the_api_cannot_name_a_host() -> None:
    async def main() -> None:
        async with receiving(answer(200)) as heard:
            sender = post(allow=("127.0.0.0/8",))
            for url in (heard.url.replace("http", "json"), heard.url, "syslog://", "mailto://u:p@example.org"):
                channel = Channel(name="chat", kind=ChannelKind.APPRISE, urls=(url,), origin="api")
                got = await sender.send(channel, message(), now=datetime.now(UTC))
                assert "ForbiddenError" in got.text
            await sender.aclose()
            assert heard.requests == []

    asyncio.run(main())


def test_calls_that_hang_in_apprise_do_not_pile_up() -> None:
    async def main() -> None:
        async with receiving(hang) as heard:
            sender = post(environ={"URL": heard.url.replace("http", "json") + "/?cto=2&rto=2"}, attempt_s=0.2)
            channel = Channel(name="chat", kind=ChannelKind.APPRISE, urls=(ref("URL"),))
            texts = [(await sender.send(channel, message(), now=datetime.now(UTC))).text for _ in range(5)]
            assert texts[:4] == ["no answer within 0.2 s"] * 4
            assert "have not returned yet" in texts[4]
            await sender.aclose()

    asyncio.run(main())
