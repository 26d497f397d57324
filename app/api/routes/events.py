"""Runs, changes of verdicts and steps of incidents as they happen."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from app.api.feed import Feed
from app.api.params import Served
from app.api.problems import responses
from app.api.services import Services
from app.errors import UnavailableError

router = APIRouter(tags=["events"], responses=responses())
LOOK_S = 1.0
SILENCE_S = 15.0
"""A comment is sent after this long without an event, so that proxies keep the stream."""


def feed_of(request: Request) -> Feed:
    """This application's."""
    found: Feed = request.app.state.feed
    return found


@router.get(
    "/events",
    summary="What happens, as it happens",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def events(served: Served, request: Request) -> StreamingResponse:
    """Server-sent events `run`, `verdict` and `incident`, each with a JSON object, from now on."""
    feed = feed_of(request)
    if feed.listeners >= served.limits.streams:
        raise UnavailableError("too many event streams are open")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(feed, served), media_type="text/event-stream", headers=headers)


async def _stream(feed: Feed, served: Services) -> AsyncIterator[bytes]:
    number, quiet_s = feed.join(), 0.0
    try:
        yield b"retry: 3000\n\n"
        while not served.stopping():
            fresh = await feed.after(number)
            for number, event in fresh:  # noqa: B007 - the last number is where the next look begins
                yield b"event: %s\ndata: %s\n\n" % (event.kind.encode(), msgspec.json.encode(event.data))
            quiet_s = 0.0 if fresh else quiet_s + LOOK_S
            if quiet_s >= SILENCE_S:
                quiet_s = 0.0
                yield b": still here\n\n"
            await served.clock.sleep(LOOK_S)
    finally:
        feed.leave()
