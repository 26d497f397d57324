"""Channels, and the silences that keep them quiet."""

from __future__ import annotations

from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError, model_validator
from starlette.responses import Response

from app.api.door import Caller
from app.api.params import Asking, Duration, Instant, Listed, Name, Reading, Served, Writing
from app.api.problems import responses
from app.api.routes.manage import Document, schema_of
from app.api.services import Services
from app.api.views import ChannelOut, ChannelsOut
from app.errors import ConfigError, ConflictError, ForbiddenError, NotFoundError, Problem
from app.storage.outbox import add, channel_troubles
from app.storage.queries import managed
from app.storage.queries.keys import Scope, write_audit
from app.storage.queries.session import writing
from app.targets.fields import Name as ChannelName
from app.targets.load import load_channel
from app.targets.model import Channel, ChannelKind, SecretRef
from app.targets.policy import ChannelIn, MatchIn
from app.verdict.body import rfc3339
from app.verdict.outbox import Announcement

router = APIRouter(tags=["alerts"], responses=responses(404, 409))
LONGEST_SILENCE_S = 400 * 86400.0
_NAME: TypeAdapter[str] = TypeAdapter(ChannelName)


class SilencesOut(Listed):
    """Silences that have not ended."""

    items: list[managed.Silence]


class SilenceIn(BaseModel):
    """For this span, nothing that matches is announced: until `ends_at`, or for `duration`."""

    model_config = {"extra": "forbid"}

    match: MatchIn = MatchIn()
    starts_at: Instant | None = None
    ends_at: Instant | None = None
    duration: Duration | None = None
    comment: Annotated[str, Field(max_length=500)] = ""

    @model_validator(mode="after")
    def _one_end(self) -> SilenceIn:
        if (self.ends_at is None) == (self.duration is None):
            raise ValueError("give ends_at or duration")
        return self


class QueuedOut(BaseModel):
    """An announcement in the outbox; `GET /deliveries` tells what became of it."""

    id: str
    channel: str


@router.get("/silences", summary="What is silenced")
async def silences(served: Served, session: Reading) -> SilencesOut:
    """Silences that have not ended, in the order of their ends."""
    return SilencesOut(items=list(await managed.list_silences(session, now=served.clock.now())))


@router.post("/silences", summary="Silence what matches", status_code=201)
async def silence(served: Served, session: Writing, asking: Asking, body: SilenceIn) -> managed.Silence:
    """Verdicts and incidents go on; only their announcements are held back."""
    now = served.clock.now()
    starts = body.starts_at or now
    ends = body.ends_at or starts + timedelta(seconds=body.duration or 0.0)
    if not starts < ends <= now + timedelta(seconds=LONGEST_SILENCE_S) or ends <= now:
        raise ConfigError([Problem(field="ends_at", message="must lie after starts_at and now, and within 400 days")])
    match = {key: value for key, value in body.match.model_dump().items() if value is not None}
    made = managed.Silence(id=uuid4().hex, match=match, starts_at=starts, ends_at=ends, comment=body.comment, created_at=now)
    await managed.add_silence(session, made)
    detail = {"match": match, "ends_at": ends.isoformat()}
    await write_audit(session, at=now, actor=asking.name, action="silence.create", subject=made.id, detail=detail)
    return made


@router.delete("/silences/{silence_id}", summary="End a silence", status_code=204)
async def unsilence(served: Served, session: Writing, asking: Asking, silence_id: Annotated[str, Path(max_length=200)]) -> None:
    """From now on, what matched is announced again."""
    await managed.end_silence(session, silence_id)
    await write_audit(session, at=served.clock.now(), actor=asking.name, action="silence.delete", subject=silence_id)


@router.get("/channels", summary="Where alerts go")
async def channels(served: Served, session: Reading) -> ChannelsOut:
    """All channels; references are shown, and what they hold is not."""
    disabled = await managed.disabled_channels(session)
    troubles = await channel_troubles(session.connection, now=served.clock.now())
    known = served.config().channels.values()
    return ChannelsOut(items=[ChannelOut.of(c, disabled=disabled.get(c.name), trouble=troubles.get(c.name)) for c in known])


@router.post("/channels", summary="Make a channel", status_code=201, openapi_extra=schema_of(ChannelIn, named=True))
async def create(served: Served, asking: Asking, document: Document, response: Response) -> ChannelOut:
    """The body has `name` and the keys of a channel in the config file. 409 when the name is taken."""
    rest = dict(document)
    name = rest.pop("name", None)
    channel = _checked(name, rest, asking)
    if channel.name in served.config().channels:
        raise ConflictError(f"there is a channel '{channel.name}' already")
    await _keep(served, asking, channel, rest, action="channel.create")
    response.headers["Location"] = f"/api/v1/channels/{channel.name}"
    return ChannelOut.of(channel)


@router.put(
    "/channels/{name}",
    summary="Replace a channel, or make it",
    responses={201: {"model": ChannelOut, "description": "Made"}},
    openapi_extra=schema_of(ChannelIn),
)
async def replace(served: Served, asking: Asking, name: Name, document: Document, response: Response) -> ChannelOut:
    """The whole channel as it shall be. One that its receiver had disabled is used again. 201 when it is new."""
    rest = dict(document)
    if rest.pop("name", name) != name:
        raise ConfigError([Problem(field="name", message="must be as in the path, or left out")])
    known = served.config().channels.get(name)
    _own(known, name)
    channel = _checked(name, rest, asking)
    await _keep(served, asking, channel, rest, action="channel.replace")
    response.status_code = 200 if known is not None else 201
    return ChannelOut.of(channel)


@router.delete("/channels/{name}", summary="Remove a channel", status_code=204)
async def remove(served: Served, asking: Asking, name: Name) -> None:
    """What is still to be delivered to it is given up."""
    _own(_known(served, name), name)
    async with writing(served.database) as session:
        await managed.delete_document(session, "channels", name)
        await write_audit(session, at=served.clock.now(), actor=asking.name, action="channel.delete", subject=name)
    await served.reload()


@router.post("/channels/{name}/test", summary="Send a test", status_code=202)
async def test(served: Served, session: Writing, asking: Asking, name: Name) -> QueuedOut:
    """Queue a `channel.test`; `GET /deliveries` tells what became of it. A channel that was disabled is used again."""
    _known(served, name)
    now = served.clock.now()
    made = Announcement(id=f"msg_{uuid4().hex}", channel=name, type="channel.test", body=_test_body(name, now), created_at=now)
    await managed.enable_channel(session, name)
    await add(session.connection, [made])
    await write_audit(session, at=now, actor=asking.name, action="channel.test", subject=name)
    return QueuedOut(id=made.id, channel=name)


def _test_body(name: str, now: datetime) -> dict[str, Any]:
    summary = f"This is a test of the channel '{name}'. Nothing is wrong."
    return {
        "type": "channel.test",
        "timestamp": rfc3339(now),
        "data": {"incident": None, "verdict": None, "summary": summary, "links": {}},
    }


def _known(served: Services, name: str) -> Channel:
    found = served.config().channels.get(name)
    if found is None:
        raise NotFoundError(f"no channel '{name[:200]}'", near=get_close_matches(name, served.config().channels, n=3))
    return found


def _own(known: Channel | None, name: str) -> None:
    """Refuse to change what the file states.

    Raises:
        ConflictError: it stands in the file.
    """
    if known is not None and known.origin == "file":
        raise ConflictError(f"'{name}' stands in the config file; change it there")


def _checked(name: JsonValue, rest: dict[str, Any], asking: Caller) -> Channel:
    """The channel of a body.

    Raises:
        ConfigError: with every problem found; an Apprise URL as it is, which is all tokens, is one: it would be stored.
        ForbiddenError: it names a secret of the server, and the key's scope is less than admin.
    """
    try:
        channel = load_channel(_NAME.validate_python(name), rest)
    except ValidationError as error:
        raise ConfigError([Problem(field="name", message=str(error.errors()[0]["msg"]))]) from None
    if channel.kind is ChannelKind.APPRISE and not all(isinstance(url, SecretRef) for url in channel.urls):
        raise ConfigError([Problem(field="url", message="an Apprise URL holds secrets; give a reference, such as ${env:NAME}")])
    names_secret = bool(channel.secrets) or any(isinstance(url, SecretRef) for url in channel.urls)
    if names_secret and not asking.scope.allows(Scope.ADMIN):
        raise ForbiddenError("a reference to a secret of the server needs a key with the scope 'admin'")
    return channel


async def _keep(served: Services, asking: Caller, channel: Channel, document: dict[str, Any], *, action: str) -> None:
    now = served.clock.now()
    async with writing(served.database) as session:
        await managed.put_document(session, "channels", channel.name, document, now=now, new=action.endswith("create"))
        await managed.enable_channel(session, channel.name)
        await write_audit(
            session, at=now, actor=asking.name, action=action, subject=channel.name, detail={"kind": channel.kind}
        )
    await served.reload()
