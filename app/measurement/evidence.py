"""A recording as a file: what is kept of a remarkable run, can be downloaded, and replays to the same figures.

Gzip around one line of JSON (facts, marks, stamps) and the body as it came: `zcat FILE | tail -n +2` shows the body.
"""

from __future__ import annotations

import gzip
import re
import zlib
from array import array
from dataclasses import dataclass, fields
from datetime import datetime

import msgspec

from app.errors import UsageError
from app.measurement.complaint import SECRETS, SURE, redact
from app.measurement.recording import Failure, HostHealth, Marks, Recording, StampSource, Tape
from app.targets.model import Connection

FORMAT = "bandwatch recording 1"
MAGIC = b"\x1f\x8b"
BODY_LIMIT = 4 << 20
"""A longer body is cut; the recording then carries the note `recording_cut`."""
SIZE_LIMIT = 512 << 10
"""The most bytes of a kept recording; a body that compresses worse is cut until it fits."""
READ_LIMIT = 64 << 20
"""No file unpacks to more than this."""
CUT = "recording_cut"
_SURE, _SECRETS = (re.compile(each.pattern.encode()) for each in (SURE, SECRETS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """The first line. Nothing of the request is in it but what was asked of whom."""

    format: str
    base_url: str
    model: str
    recipe: str
    dialect: str
    started_at: datetime
    marks: Marks
    stamps: list[int]
    ends: list[int]
    status: int | None
    headers: list[tuple[str, str]]
    ended: bool
    failure: Failure | None
    connection: Connection
    stamp_source: StampSource
    host: HostHealth
    expected_output_tokens: int | None
    request_notes: tuple[str, ...]


_SAME = tuple(
    field.name for field in fields(_Facts) if field.name not in {"format", "stamps", "ends", "headers", "request_notes"}
)
_decoder = msgspec.json.Decoder(_Facts)


def encode(recording: Recording, *, body_limit: int = BODY_LIMIT, size_limit: int = SIZE_LIMIT) -> bytes:
    """The recording as a file of at most `size_limit` bytes, without what looks like a secret.

    Stars stand where a secret stood, as many as it had bytes, so that what arrived when stays true.
    """
    limit = min(body_limit, len(recording.tape.body))
    while True:
        packed = _pack(recording, limit)
        if len(packed) <= size_limit or limit == 0:
            return packed
        limit //= 2


def _pack(recording: Recording, limit: int) -> bytes:
    tape = recording.tape
    notes = recording.request_notes
    if limit < len(tape.body) and CUT not in notes:
        notes = (*notes, CUT)
    facts = _Facts(
        format=FORMAT,
        stamps=list(tape.stamps),
        ends=[min(end, limit) for end in tape.ends],
        headers=[(name, redact(value)) for name, value in recording.headers],
        request_notes=notes,
        **{name: getattr(recording, name) for name in _SAME},
    )
    return gzip.compress(
        msgspec.json.encode(facts) + b"\n" + mask(tape.body[:limit], answer=recording.status == 200), 6, mtime=0
    )


def mask(body: bytes, *, answer: bool) -> bytes:
    """Stars for what looks like a secret; white space stays, so that no event loses its end.

    In an answer only what is one for sure: long words, ids and fingerprints belong to it. In the body of an error anything
    that may be one. The key that was sent has already been taken out by whoever knew it.
    """
    return (_SURE if answer else _SECRETS).sub(lambda found: re.sub(rb"\S", b"*", found[0]), body)


def is_recording(content: bytes) -> bool:
    """Is this a kept recording, and no response body?"""
    return content.startswith(MAGIC)


def decode(content: bytes) -> Recording:
    """The recording of a file that `encode` made.

    Raises:
        UsageError: it is none, or is broken.
    """
    try:
        engine = zlib.decompressobj(31)
        raw = engine.decompress(content, READ_LIMIT)
        line, _, body = raw.partition(b"\n")
        facts = _decoder.decode(line)
    except (zlib.error, msgspec.DecodeError) as error:
        raise UsageError(f"not a kept recording: {error}") from error
    if not engine.eof or facts.format != FORMAT or len(facts.stamps) != len(facts.ends):
        raise UsageError("not a kept recording, or one of another version, or only a part of it")
    if any(not 0 <= end <= len(body) for end in facts.ends) or facts.ends != sorted(facts.ends):
        raise UsageError("not a kept recording: its reads do not fit its body")
    return Recording(
        tape=Tape(body=body, stamps=array("q", facts.stamps), ends=array("q", facts.ends)),
        headers=tuple(facts.headers),
        request_notes=facts.request_notes,
        **{name: getattr(facts, name) for name in _SAME},
    )
