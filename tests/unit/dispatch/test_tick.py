"""A tick travels as bytes, and its identity is one whatever the zone it was written in."""

from datetime import timedelta, timezone

import pytest

from app.dispatch.tick import Tick, decode, encode
from tests.support.runs import NOW


def test_a_tick_comes_back_as_it_was() -> None:
    tick = Tick(target="p/m", location="eu", due_at=NOW, asked=True)
    assert decode(encode(tick)) == tick


def test_the_same_instant_in_another_zone_is_the_same_tick() -> None:
    here = Tick(target="p/m", location="eu", due_at=NOW)
    there = Tick(target="p/m", location="eu", due_at=NOW.astimezone(timezone(timedelta(hours=9))))
    assert here.key == there.key


def test_what_is_not_a_tick_is_refused() -> None:
    with pytest.raises(ValueError, match="not a tick"):
        decode(b'{"target": 3}')
