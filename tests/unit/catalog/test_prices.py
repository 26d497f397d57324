"""Prices: a date and a source in each row, rows of one's own that win, and sums that are right."""

from datetime import date
from pathlib import Path

import pytest

from app.catalog.prices import load_prices, usd
from app.errors import ConfigError

HEAD = "provider,model,usd_per_mtok_in,usd_per_mtok_out,as_of,source\n"


def test_every_price_has_a_date_a_source_and_a_sensible_amount() -> None:
    prices = load_prices()
    assert len(prices) >= 20
    for price in prices.values():
        assert price.as_of <= date(2026, 12, 1)
        assert price.source.startswith("https://")
        assert 0 < price.per_mtok_in <= price.per_mtok_out < 100


def test_the_sum_is_tokens_by_price() -> None:
    cost = usd(load_prices(), providers=["mine", "OpenAI"], model="GPT-4o-mini", tokens_in=60, tokens_out=128)
    assert cost == pytest.approx(60 * 0.15e-6 + 128 * 0.60e-6, rel=1e-12)


def test_an_unknown_price_is_none_and_no_tokens_are_free() -> None:
    prices = load_prices()
    assert usd(prices, providers=["openai"], model="nobody/knows", tokens_in=1, tokens_out=1) is None
    assert usd(prices, providers=[], model="gpt-4o", tokens_in=1, tokens_out=1) is None
    assert usd(prices, providers=["openai"], model="gpt-4o", tokens_in=0, tokens_out=0) == 0.0


def test_rows_of_ones_own_win(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(
        HEAD + "groq,openai/gpt-oss-120b,0.1,0.2,2026-12-01,contract\nmine,m,0,0,2026-12-01,ours\n"
    )
    prices = load_prices(tmp_path)
    assert usd(prices, providers=["groq"], model="openai/gpt-oss-120b", tokens_in=10**6, tokens_out=10**6) == pytest.approx(0.3)
    assert usd(prices, providers=["mine"], model="m", tokens_in=5, tokens_out=5) == 0.0
    assert ("openai", "gpt-4o") in prices
    assert load_prices(tmp_path / "nowhere") == load_prices()


@pytest.mark.parametrize(
    "row",
    ["p,m,x,1,2026-12-01,s", "p,m,-1,1,2026-12-01,s", "p,m,nan,1,2026-12-01,s", "p,m,1,1,soon,s", ",m,1,1,2026-12-01,s", "p,m"],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, row: str) -> None:
    (tmp_path / "prices.csv").write_text(HEAD + row + "\n")
    with pytest.raises(ConfigError, match=r"prices\.csv:2: not usable"):
        load_prices(tmp_path)
