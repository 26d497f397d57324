"""The dialects: one small file each, found by name or by the base URL's host."""

from __future__ import annotations

import importlib
import ipaddress
import pkgutil
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from urllib.parse import urlsplit

from app.errors import NotFoundError
from app.measurement.dialects.model import DROPPABLE, Body, Dialect, request_body

__all__ = ["DROPPABLE", "Body", "Dialect", "by_name", "dialect_for", "dialects", "request_body"]


@cache
def dialects() -> Mapping[str, Dialect]:
    """Name -> dialect, every file of this folder."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name != "model":
            dialect: Dialect = importlib.import_module(f"{__name__}.{module.name}").DIALECT
            found[dialect.name] = dialect
    return MappingProxyType(found)


def by_name(name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        NotFoundError: with near matches.
    """
    known = dialects()
    if name not in known:
        raise NotFoundError(f"no dialect {name!r}", near=get_close_matches(name, known, n=3, cutoff=0.4))
    return known[name]


def dialect_for(base_url: str, *, name: str | None = None) -> Dialect:
    """The named dialect; else the one whose host it is; else that of a host of one's own, or the generic one."""
    if name is not None:
        return by_name(name)
    host = (urlsplit(base_url).hostname or "").lower()
    for dialect in dialects().values():
        if any(host == end or host.endswith("." + end) for end in dialect.hosts):
            return dialect
    return by_name("selfhosted" if _own(host) else "generic")


def _own(host: str) -> bool:
    """An address, or a name without a public ending: a host of one's own."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".svc", ".home"))
    return True
