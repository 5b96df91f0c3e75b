"""Tokens: how many a server says there were, and what they cost."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

MILLION = 1_000_000


MOST_TOKENS = 1 << 40
"""No request, answer or window is larger."""


def as_count(value: object) -> int:
    """A number of tokens as a server states it. What cannot be one counts as not stated: a server could otherwise
    lower the cost of a session, or break the computation."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else 0


class Tokens(Protocol):
    """What is counted of `Usage`."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def cache_read_tokens(self) -> int: ...
    @property
    def cache_write_tokens(self) -> int: ...


class Prices(Struct, frozen=True, rename="camel"):
    """US dollars per million tokens; `models.NAME.prices` in the settings."""

    input: float = 0
    output: float = 0
    cache_read: float | None = None
    """Tokens served from the server's cache. None: the same as any other input."""
    cache_write: float | None = None
    """Tokens added to the server's cache. None: the same as any other input."""

    def cost(self, usage: Tokens) -> float:
        """US dollars."""
        read, write = usage.cache_read_tokens, usage.cache_write_tokens
        plain = max(usage.input_tokens - read - write, 0)
        return (
            plain * self.input
            + read * self._or_input(self.cache_read)
            + write * self._or_input(self.cache_write)
            + usage.output_tokens * self.output
        ) / MILLION

    def saved(self, usage: Tokens) -> float:
        """How many US dollars the cache saved; negative if writing to it cost more than reading from it saved."""
        read = usage.cache_read_tokens * (self.input - self._or_input(self.cache_read))
        write = usage.cache_write_tokens * (self.input - self._or_input(self.cache_write))
        return (read + write) / MILLION

    def _or_input(self, price: float | None) -> float:
        return self.input if price is None else price


PRICED = ("input", "output", "cacheRead", "cacheWrite")
"""The settings keys, in this order."""


def prices_in(given: Mapping[str, float]) -> Prices:
    """The prices in the settings of a model."""
    return Prices(
        input=given.get("input", 0),
        output=given.get("output", 0),
        cache_read=given.get("cacheRead"),
        cache_write=given.get("cacheWrite"),
    )
