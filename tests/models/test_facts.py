"""What is known about hosted models, and what their tokens cost."""

from datetime import date

import pytest

from tests.rows import rows
from wave_agent.agent.model_windows import known_facts
from wave_agent.models.base import Usage
from wave_agent.models.facts import AS_OF, MODELS, facts_for
from wave_agent.models.prices import PRICED, Prices, prices_in


@rows("name", MODELS)
def test_every_row_makes_sense(name: str) -> None:
    facts = MODELS[name]
    prices = facts.prices
    assert known_facts(name) == facts_for(name) == facts
    assert 100_000 < facts.window <= 2_000_000
    assert 8_000 <= facts.output <= facts.window
    assert 0 < prices.input <= prices.output
    assert prices.cache_read is None or prices.cache_read < prices.input
    assert prices.cache_write is None or prices.cache_write > prices.input
    assert date.fromisoformat(AS_OF) >= date(2026, 1, 1)


@rows(
    ("spelling", "name"),
    [
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("openai/gpt-5", "gpt-5"),
        ("gpt-5-2025-08-07", "gpt-5"),
    ],
)
def test_the_same_model_under_another_name(spelling: str, name: str) -> None:
    assert known_facts(spelling) == MODELS[name]


@rows("name", ["", "any", "qwen3-coder", "gpt-5:free", "gpt-5-turbo", "gpt", "claude", "my-gpt-5"])
def test_another_model_is_not_taken_for_a_known_one(name: str) -> None:
    assert known_facts(name) is None
    assert facts_for(name) is None


def test_each_kind_of_token_has_its_price() -> None:
    prices = Prices(10, 50, 1, 12.5)
    usage = Usage(1_000_000, 100_000, cache_read_tokens=600_000, cache_write_tokens=200_000)
    assert prices.cost(usage) == pytest.approx(0.2 * 10 + 0.6 * 1 + 0.2 * 12.5 + 0.1 * 50)
    assert prices.saved(usage) == pytest.approx(0.6 * 9 - 0.2 * 2.5)


def test_without_prices_for_the_cache_its_tokens_cost_what_others_do() -> None:
    usage = Usage(1_000_000, 0, cache_read_tokens=600_000, cache_write_tokens=200_000)
    assert (Prices(10, 50).cost(usage), Prices(10, 50).saved(usage)) == (10, 0)


def test_a_server_that_counts_more_cached_tokens_than_it_was_sent_earns_nobody_money() -> None:
    assert Prices(10, 50, 1).cost(Usage(10, 0, cache_read_tokens=1000)) >= 0


def test_the_settings_can_set_every_price() -> None:
    assert prices_in(dict(zip(PRICED, (1, 2, 3, 4), strict=True))) == Prices(1, 2, 3, 4)
    assert prices_in({"input": 1}) == Prices(1, 0)
