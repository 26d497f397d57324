"""Domain objects as JSON documents in Postgres, and back; the dataclasses are the schema."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def to_document(value: object) -> Any:  # noqa: ANN401 - JSON
    """Plain JSON types of a domain object; datetimes become RFC 3339 text."""
    return msgspec.to_builtins(value, str_keys=True)


def from_document(document: object, kind: type[T]) -> T:
    """The domain object of a document; unknown fields of a newer version are left out."""
    return msgspec.convert(document, type=kind, strict=False, str_keys=True)
