"""The tokens of one or more requests, as attributes."""

from msgspec import Struct


class TokenCount(Struct, frozen=True, kw_only=True):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: "TokenCount") -> "TokenCount":
        return TokenCount(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )

    def attributes(self) -> dict[str, int]:
        """Only what is known: not every server counts."""
        found = {
            "gen_ai.usage.input_tokens": self.input,
            "gen_ai.usage.output_tokens": self.output,
            "gen_ai.usage.cache_read.input_tokens": self.cache_read,
            "gen_ai.usage.cache_creation.input_tokens": self.cache_write,
        }
        return {name: value for name, value in found.items() if value}
