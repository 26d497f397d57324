"""The recorded responses of `tests/corpus`, and how each is replayed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.measurement.replay import Recorded, replay

CORPUS = Path(__file__).parents[1] / "corpus"
FILES = sorted(p for p in CORPUS.iterdir() if (CORPUS / f"{p.name}.meta.json").exists())
STREAMS = [p for p in FILES if p.suffix == ".sse"]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def meta_of(path: Path) -> dict[str, Any]:
    return dict(json.loads((CORPUS / f"{path.name}.meta.json").read_text()))


def recorded(path: Path, *, body: bytes | None = None, read_sizes: Iterable[int] | None = None) -> Recorded:
    """The file as its meta file says it was answered, or another body in its place."""
    meta = meta_of(path)
    return Recorded(
        body=path.read_bytes() if body is None else body,
        status=meta["http_status"],
        content_type=meta["content_type"],
        headers=meta["headers"],
        read_sizes=read_sizes,
    )


def replayed(path: Path, *, body: bytes | None = None, read_sizes: Iterable[int] | None = None) -> dict[str, Any]:
    """What `bandwatch replay` says of it."""
    return replay(recorded(path, body=body, read_sizes=read_sizes), file=path.name, now=NOW)
