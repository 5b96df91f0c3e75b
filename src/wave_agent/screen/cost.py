"""Tokens and dollars, as people read them."""

from wave_agent.agent.spending import shown
from wave_agent.models.prices import MILLION

__all__ = ["shown", "tokens"]


def tokens(count: int) -> str:
    """`950`, `12.3k`, `1.2M`."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < MILLION else f"{count / MILLION:.1f}M"
