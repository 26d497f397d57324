"""The kinds of values in a config file, each with the sentence that refuses a wrong one.

No message repeats the value of a field that may hold a secret.
"""

from __future__ import annotations

import re
from datetime import time
from ipaddress import ip_network
from typing import Annotated, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from app.targets.model import SecretRef, SecretSource
from app.units import parse_duration

FORBIDDEN_SEGMENTS = frozenset({"runs", "series", "verdict", "pause", "resume", "probe", "diagnose"})
"""Words that routes put behind a target's name (docs: contract)."""

_REFERENCE = re.compile(r"\$\{(env):([A-Za-z_][A-Za-z0-9_]*)\}|\$\{(file):(/[^{}\x00-\x1f]+)\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]*")
_GLOB = re.compile(r"[A-Za-z0-9._:@+/*?-]+")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET_HEADER = re.compile(r"(?i)authorization|cookie|.*(?:api-?key|token|secret|password).*")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def parse_reference(text: str) -> SecretRef | None:
    """The secret that a text names as a whole, or None when it is anything else."""
    match = _REFERENCE.fullmatch(text.strip())
    if match is None:
        return None
    source, name = (match[1], match[2]) if match[1] else (match[3], match[4])
    return SecretRef(source=SecretSource(source), name=name)


def _reference(value: Any) -> SecretRef:  # noqa: ANN401 - whatever the file holds
    found = parse_reference(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("must be a reference, ${env:NAME} or ${file:/path}; a secret itself may not stand in the file")
    return found


def _address(value: Any) -> str | SecretRef:  # noqa: ANN401 - whatever the file holds
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a URL, or a reference to one: ${env:NAME} or ${file:/path}")
    if "${" in value:
        return _reference(value)
    return value.strip()


def _duration(value: Any) -> float:  # noqa: ANN401 - whatever the file holds
    if not isinstance(value, str):
        raise ValueError("must be a duration with its unit, like 500ms, 60s, 5m, 2h or 30d")  # noqa: TRY004 - pydantic's protocol
    seconds = parse_duration(value)
    if seconds <= 0:
        raise ValueError("must be longer than nothing")
    return seconds


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("must be 1 to 63 letters, digits, '.', '_' or '-', and start with a letter or digit")
    return value


def _target_name(value: str) -> str:
    segments = value.split("/")
    if len(value) > 200 or not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise ValueError("must be segments of letters, digits and . _ : @ + - with '/' between them, at most 200 characters")
    if clash := FORBIDDEN_SEGMENTS.intersection(segments):
        raise ValueError(f"no segment of a name may be '{min(clash)}', which is a word of the REST interface")
    return value


def _glob(value: str) -> str:
    if not _GLOB.fullmatch(value):
        raise ValueError("must be a name or a glob; a glob knows only * and ?, it is no regular expression")
    return value


def _time_of_day(value: Any) -> time:  # noqa: ANN401 - whatever the file holds
    match = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('must be a time of day such as "02:00"')
    return time(int(match[1]), int(match[2]))


def _time_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ValueError, OSError, LookupError):
        raise ValueError("is no IANA time zone; write it like Europe/Berlin or UTC") from None
    return value


def _weekday(value: Any) -> int:  # noqa: ANN401 - whatever the file holds
    text = value.lower() if isinstance(value, str) else ""
    for names in (_WEEKDAYS, _DAYS):
        if text in names:
            return names.index(text)
    raise ValueError(f"must be one of {', '.join(_WEEKDAYS)}")


def _network(value: str) -> str:
    try:
        return str(ip_network(value.strip()))
    except ValueError:
        raise ValueError("must be a network such as 10.1.0.0/16 or fd00::/8, with no bits set behind its prefix") from None


def check_url(value: str, *, schemes: frozenset[str] = frozenset({"http", "https"})) -> str:
    """A URL with a host and without credentials.

    Raises:
        ValueError: a sentence that does not repeat the URL.
    """
    text = value.strip()
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is no URL that can be read") from None
    if parts.scheme not in schemes or not host or re.search(r"[\s\x00-\x1f]", text):
        raise ValueError(f"must be a URL that starts with {' or '.join(sorted(f'{scheme}://' for scheme in schemes))}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold credentials")
    return text


def _base_url(value: str) -> str:
    text = check_url(value)
    parts = urlsplit(text)
    if parts.query or parts.fragment:
        raise ValueError("must not have a query or a fragment")
    path = text.rstrip("/")
    if path.endswith("/chat/completions"):
        raise ValueError("must end before /chat/completions, which is added")
    return path


def _headers(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not _HEADER.fullmatch(name) or not all(32 <= ord(character) < 127 for character in text):
            raise ValueError("must be names and values of printable ASCII")
        if _SECRET_HEADER.fullmatch(name):
            raise ValueError(f"'{name}' holds a secret, and a secret may not stand in the file; use api_key")
    return value


def _speculation(value: str) -> str:
    if value in {"unknown", "off", "on"}:
        return value
    parts = value.split(",")
    try:
        alpha, gamma, *cost = (float(part) for part in parts)
        ok = 0 <= alpha < 1 and gamma >= 1 and gamma == int(gamma) and len(cost) <= 1 and all(c >= 0 for c in cost)
    except (ValueError, OverflowError):
        ok = False
    if not ok:
        raise ValueError("must be unknown, off, on, or alpha,gamma[,cost] such as 0.7,4,0.05")
    return value


Seconds = Annotated[float, BeforeValidator(_duration), WithJsonSchema({"type": "string", "examples": ["60s", "500ms"]})]
Reference = Annotated[SecretRef, BeforeValidator(_reference), WithJsonSchema({"type": "string", "examples": ["${env:NAME}"]})]
Address = Annotated[str | SecretRef, BeforeValidator(_address), WithJsonSchema({"type": "string"})]
Name = Annotated[str, AfterValidator(_name)]
TargetName = Annotated[str, AfterValidator(_target_name)]
Glob = Annotated[str, AfterValidator(_glob)]
TimeOfDay = Annotated[time, BeforeValidator(_time_of_day), WithJsonSchema({"type": "string", "examples": ["02:00"]})]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
Weekday = Annotated[int, BeforeValidator(_weekday), WithJsonSchema({"type": "string", "enum": list(_WEEKDAYS)})]
Network = Annotated[str, AfterValidator(_network)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
Headers = Annotated[dict[str, str], AfterValidator(_headers)]
Speculation = Annotated[str, AfterValidator(_speculation)]
Text = Annotated[str, Field(min_length=1, max_length=300)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
