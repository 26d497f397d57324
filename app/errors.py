"""The one error tree.

::

    BandwatchError
    +-- UsageError            wrong arguments (exit 2, HTTP 400)
    |   +-- ConfigError       a config file with one or more problems (exit 2)
    |   +-- SecretError       a secret that is not set, or is none that can be used (exit 2)
    +-- NotFoundError         an id that nobody knows, with near matches (exit 2, HTTP 404)
    +-- ConflictError         the state does not allow it (exit 1, HTTP 409)
    +-- ForbiddenError        the key's scope or an address rule says no (HTTP 403)
    +-- UnauthorizedError     no key, or a wrong one (HTTP 401)
    +-- UnavailableError      something we need is away (exit 1, HTTP 503)

A provider's failure is an outcome, not an exception. Each error knows its exit code and its HTTP status, so that doors
translate without a table of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class BandwatchError(Exception):
    """Root of all errors that Bandwatch raises on purpose; its text is one clear sentence for a person."""

    exit_code: ClassVar[int] = 1
    status: ClassVar[int] = 500
    slug: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"


class UsageError(BandwatchError):
    """The caller asked for something that makes no sense; the text names the argument or field."""

    exit_code = 2
    status = 400
    slug = "bad-request"
    title = "Bad request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with an input: where (`file`, `line` from 1, dotted `field`) and what (`message`)."""

    message: str
    field: str = ""
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line is not None else self.file
        return ": ".join(part for part in (place, self.field, self.message) if part)


class ConfigError(UsageError):
    """A config file that cannot be used; `problems` holds every problem found, not just the first."""

    slug = "bad-config"
    title = "Bad configuration"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class SecretError(UsageError):
    """A secret that is not set or cannot be used; the text names its reference and never its value."""

    slug = "bad-secret"
    title = "Secret not usable"


class NotFoundError(BandwatchError):
    """Nobody knows this id; `near` holds the closest known ones."""

    exit_code = 2
    status = 404
    slug = "not-found"
    title = "Not found"

    def __init__(self, message: str, *, near: Sequence[str] = ()) -> None:
        self.near = tuple(near)
        super().__init__(f"{message}; did you mean {', '.join(self.near)}?" if self.near else message)


class ConflictError(BandwatchError):
    """The present state does not allow it."""

    status = 409
    slug = "conflict"
    title = "Conflict"


class UnauthorizedError(BandwatchError):
    """No API key, or one that is not known."""

    status = 401
    slug = "unauthorized"
    title = "Unauthorized"


class ForbiddenError(BandwatchError):
    """Known, but not allowed."""

    status = 403
    slug = "forbidden"
    title = "Forbidden"


class UnavailableError(BandwatchError):
    """Something that is needed is away now: the database, a port, a binary."""

    status = 503
    slug = "unavailable"
    title = "Unavailable"
