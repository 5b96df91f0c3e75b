"""Tokens that servers state, and what they cost."""

from typing import Any

import pytest

from tests.rows import rows
from wave_agent.models.base import Usage, usage_of
from wave_agent.models.prices import MOST_TOKENS, Prices, as_count


@rows(
    ("stated", "counted"),
    [(3, 3), (0, 0), (-1, 0), (True, 0), (1.5, 0), ("3", 0), (None, 0), (MOST_TOKENS, MOST_TOKENS), (10**400, 0)],
)
def test_a_count_that_cannot_be_one_is_not_stated(stated: Any, counted: int) -> None:
    assert as_count(stated) == counted


@rows(
    ("read", "written", "expected"),
    [
        (2, 3, Usage(10, 1, cache_read_tokens=2, cache_write_tokens=3)),
        (100, 3, Usage(10, 1, cache_read_tokens=10)),
        (4, 100, Usage(10, 1, cache_read_tokens=4, cache_write_tokens=6)),
    ],
)
def test_no_more_is_cached_than_was_sent(read: int, written: int, expected: Usage) -> None:
    assert usage_of(10, 1, read, written) == expected


def test_the_largest_counts_have_a_price() -> None:
    usage = usage_of(MOST_TOKENS, MOST_TOKENS, 0, 0)
    assert Prices(input=10, output=10).cost(usage) == pytest.approx(2 * MOST_TOKENS / 1e5)
