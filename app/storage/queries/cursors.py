"""Places in a list, as opaque text: where the next page begins, whatever was added meanwhile."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from app.errors import UsageError

T = TypeVar("T")
_LONGEST = 600
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """Part of a list, and where it goes on; None: that was all."""

    items: tuple[T, ...]
    next_cursor: str | None = None


def encode_cursor(*parts: str | int | datetime) -> str:
    """The cursor that `decode_cursor` understands."""
    return base64.urlsafe_b64encode(msgspec.json.encode(parts)).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type[str | int | datetime]) -> tuple[Any, ...]:
    """The parts of a cursor, of these kinds.

    Raises:
        UsageError: it is none that a list of this kind gave.
    """
    try:
        raw = base64.b64decode(cursor[:_LONGEST] + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        parts: tuple[Any, ...] = msgspec.json.decode(raw, type=tuple[kinds])  # type: ignore[valid-type]
    except (ValueError, binascii.Error, RecursionError):
        raise UsageError("cursor: is none that a list of this kind gave") from None
    if not all(_storable(part) for part in parts):
        raise UsageError("cursor: is none that a list of this kind gave")
    return parts


def _storable(part: object) -> bool:
    match part:
        case datetime():
            return part.tzinfo is not None and _FIRST < part < _LAST
        case int():
            return 0 <= part < 2**62
        case _:
            return "\x00" not in str(part)


def page_of(rows: Sequence[T], *, limit: int, cursor: str | None) -> Page[T]:
    """A page of `limit` rows out of up to `limit` + 1 that were read; `cursor` is where the page after it begins."""
    return Page(items=tuple(rows[:limit]), next_cursor=cursor if len(rows) > limit else None)
