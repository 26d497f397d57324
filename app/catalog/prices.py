"""What tokens cost, as providers publish it: a table with a date and a source in each row, and rows of one's own."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path

from app.errors import ConfigError, Problem

FILE = "prices.csv"
MTOK = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD for a million tokens in and out, uncached, at list price (at peak hours, where those differ)."""

    provider: str
    model: str
    per_mtok_in: float
    per_mtok_out: float
    as_of: date
    source: str


Prices = Mapping[tuple[str, str], Price]
"""(provider, model), both in lower case -> price. The provider is a dialect's name, or the one in the config file."""


def load_prices(extra: Path | None = None) -> Prices:
    """The shipped table, and `prices.csv` in a folder of one's own, whose rows win.

    Raises:
        ConfigError: a row of one's own that cannot be used, with file and line.
    """
    with (files("app.catalog") / "data" / FILE).open(encoding="utf-8") as shipped:
        found = _rows(csv.DictReader(shipped), file=FILE)
    if extra is not None and (own := extra / FILE).is_file():
        with own.open(encoding="utf-8", newline="") as file:
            found |= _rows(csv.DictReader(file), file=str(own))
    return found


def usd(prices: Prices, *, providers: Iterable[str], model: str, tokens_in: int, tokens_out: int) -> float | None:
    """What a call costs at one of the names that its provider goes by; None when no price is known."""
    for provider in providers:
        price = prices.get(_key(provider, model))
        if price is not None:
            return (tokens_in * price.per_mtok_in + tokens_out * price.per_mtok_out) / MTOK
    return None


def _key(provider: str, model: str) -> tuple[str, str]:
    return provider.strip().lower(), model.strip().lower()


def _rows(rows: Iterable[Mapping[str, str]], *, file: str) -> dict[tuple[str, str], Price]:
    found = {}
    for line, row in enumerate(rows, start=2):
        try:
            price = _price(row)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise ConfigError([Problem(file=file, line=line, message=f"not usable: {error}")]) from error
        found[_key(price.provider, price.model)] = price
    return found


def _price(row: Mapping[str, str]) -> Price:
    each = [float(row[name]) for name in ("usd_per_mtok_in", "usd_per_mtok_out")]
    if not all(0 <= amount < MTOK for amount in each):
        raise ValueError("a price must be a number of USD, not below 0")
    if not row["provider"].strip() or not row["model"].strip():
        raise ValueError("provider and model must be named")
    return Price(
        provider=row["provider"],
        model=row["model"],
        per_mtok_in=each[0],
        per_mtok_out=each[1],
        as_of=date.fromisoformat(row["as_of"].strip()),
        source=row["source"],
    )
