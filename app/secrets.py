"""Secrets: resolved when they are used, never kept in configuration, and cleaned out of every text that leaves.

A key with a line feed behind it fails inside the HTTP client with an exception whose text is the key; so what cannot stand
in a header is refused here, with a sentence that names the reference and not the value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from app.errors import SecretError
from app.targets.model import SecretRef, SecretSource

MAX_BYTES = 16_384
MASK = "***"
_SHORTEST = 6
"""Values shorter than this are not masked: they would tear holes into ordinary text."""
_TOKEN = 16
"""A part of a secret URL that is this long is taken for a token; half of it suffices where a digit is in it."""
_SURE = 12
"""A variable that is only called a secret must be longer: `POSTGRES_PASSWORD=bandwatch` is a word of every line."""


def resolve(reference: SecretRef, *, environ: Mapping[str, str] | None = None) -> str:
    """The secret that `reference` names, now: rotation needs no restart. Surrounding white space is stripped.

    Raises:
        SecretError: not set, not readable, empty, or with characters that may not stand in an HTTP header.
    """
    if reference.source is SecretSource.ENV:
        raw = (os.environ if environ is None else environ).get(reference.name)
        if raw is None:
            raise SecretError(f"the secret {reference} is not set")
    else:
        raw = _read(reference)
    value = raw.strip()
    if not value:
        raise SecretError(f"the secret {reference} is empty")
    if not value.isascii() or not value.isprintable():
        raise SecretError(f"the secret {reference} holds control or non-ASCII characters and cannot stand in a header")
    return value


def _read(reference: SecretRef) -> str:
    try:
        with Path(reference.name).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SecretError(f"the secret {reference} cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise SecretError(f"the secret {reference} is longer than {MAX_BYTES} bytes")
    return raw.decode("utf-8", "replace")


_SHAPES = (
    # Keys by their makers' prefixes, ours among them.
    (re.compile(r"\b(?:sk|csk|pplx|xai|nvapi|fw|key)-[A-Za-z0-9_-]{12,}"), MASK),
    (re.compile(r"\b(?:gsk|hf|ghp|gho|github_pat|whsec|bw|tgp_v1|r8)_[A-Za-z0-9_+/=-]{12,}"), MASK),
    (re.compile(r"\bAIza[A-Za-z0-9_-]{20,}|\bAKIA[A-Z0-9]{12,}|\bxox[a-z]-[A-Za-z0-9-]{10,}"), MASK),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}(?:\.[A-Za-z0-9_-]*)?"), MASK),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {MASK}"),
    # `api_key=…`, `"api-key": "…"`, `x-api-key: …`, `password=…`, up to a delimiter.
    (
        re.compile(
            r"""(?ix)((?:x-)?api[-_]?key|access[-_]?token|auth[-_]?token|client[-_]?secret|secret|password|passwd|authorization)
            (["']?\s*[=:]\s*["']?)(?!\*\*\*|\$\{)(?!(?:bearer|basic)\b)[^\s"',;&}\])]{8,}"""
        ),
        rf"\1\2{MASK}",
    ),
    # Credentials in a URL, and everything behind its question mark.
    (re.compile(r"\b([a-z][a-z0-9+.-]{0,30}://)[^\s/@:\"']{0,300}:[^\s/@\"']{0,1000}@", re.IGNORECASE), rf"\1{MASK}@"),
    (re.compile(r"(https?://[^\s?\"'<>]{1,2000})\?[^\s\"'<>]+", re.IGNORECASE), r"\1?…"),
)
_SECRET_KEY = re.compile(r"(?i)(?:.*[-_])?(?:api[-_]?key|authorization|password|secret|secrets|token|cookie|dsn|database_url)")


def _parts(url: str) -> Iterator[tuple[str, str]]:
    """The parts of a URL that may be secret, by name (`path` for a part of its path), not decoded; none of what is no URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    yield "user", parts.username or ""
    yield "password", parts.password or ""
    for pair in parts.query.split("&"):
        name, _, value = pair.partition("=")
        yield name, value
    for segment in parts.path.split("/"):
        yield "path", segment


class Redactor:
    """Cleans text of every secret it has learnt, in the spellings they take on the way, and of what looks like one."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        for value in known:
            self.learn(value)

    def learn(self, value: str) -> None:
        """From now on, mask this value (raw, URL-encoded, escaped as in JSON and `repr`), wherever it stands."""
        text = value.strip()
        if len(text) < _SHORTEST or text in self._known:
            return
        self._known.update({text, quote(text, safe=""), quote(text), text.replace("\\", "\\\\").replace('"', '\\"')})
        longest_first = sorted(self._known, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def learn_url(self, url: str) -> None:
        """Learn the password of a URL such as a database's: before its `@` or in its query, as it is and decoded."""
        for name, value in _parts(url):
            if _SECRET_KEY.fullmatch(name):
                self._learn_decoded(value)

    def learn_secret_url(self, url: str) -> None:
        """Learn what may be secret of a URL that is one as a whole, such as a chat's webhook: it comes back in pieces."""
        self.learn(url)
        for name, value in _parts(url):
            if name == "password" or len(value) >= _TOKEN or (len(value) >= _TOKEN // 2 and any(map(str.isdigit, value))):
                self._learn_decoded(value)

    def _learn_decoded(self, value: str) -> None:
        self.learn(value)
        self.learn(unquote(value))

    def learn_named(self, name: str, value: str) -> None:
        """Learn a variable whose name says that it holds a secret, if it is long enough to be one."""
        if _SECRET_KEY.fullmatch(name):
            self.learn_url(value)
            if len(value) >= _SURE:
                self.learn(value)

    def clean(self, text: str) -> str:
        """The text with a mask where secrets stood."""
        cleaned = self._pattern.sub(MASK, text) if self._pattern is not None else text
        for shape, mask in _SHAPES:
            cleaned = shape.sub(mask, cleaned)
        return cleaned

    def clean_any(self, value: Any) -> Any:  # noqa: ANN401 - log fields are anything
        """The same for what a log event or a JSON document may hold; values under a secret's name go whole."""
        match value:
            case str():
                return self.clean(value)
            case bytes():
                return self.clean(value.decode("utf-8", "replace"))
            case Mapping():
                return {self._key(key): self._field(str(key), item) for key, item in value.items()}
            case list() | tuple() | set() | frozenset():
                return [self.clean_any(item) for item in value]
            case None | bool() | int() | float():
                return value
            case BaseException():
                return self.clean(f"{type(value).__name__}: {value}")
            case _:
                return self.clean(str(value))

    def __call__(self, _logger: object, _method: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """A structlog processor; it stands behind the one that formats exceptions and before the renderer."""
        return {key: self._field(key, value) for key, value in event.items()}

    def _key(self, key: object) -> object:
        return self.clean(key) if isinstance(key, str) else key

    def _field(self, key: str, value: Any) -> Any:  # noqa: ANN401 - log fields are anything
        if _SECRET_KEY.fullmatch(key) and value is not None and not isinstance(value, bool | SecretRef):
            return MASK
        return self.clean_any(value)


class Secrets:
    """What resolves references for the rest of the program, and teaches the redactor what it resolved."""

    def __init__(self, redactor: Redactor, *, environ: Mapping[str, str] | None = None) -> None:
        self._redactor = redactor
        self._environ = environ

    def resolve(self, reference: SecretRef) -> str:
        """As the function `resolve`; the value is masked from the first moment anyone has it."""
        value = resolve(reference, environ=self._environ)
        if "://" in value:
            self._redactor.learn_secret_url(value)
        else:
            self._redactor.learn(value)
        return value
