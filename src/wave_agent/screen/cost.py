"""The cost of a session, if the model's prices are configured."""

from collections.abc import Mapping
from typing import Any

from wave_agent.models.base import Usage

MILLION = 1_000_000


def cost(usage: Usage, model: Mapping[str, Any]) -> float | None:
    """US dollars. `model` is the model's settings; returns None if it has no prices."""
    prices: Mapping[str, float] = model.get("prices") or {}
    if not prices:
        return None
    spent = usage.input_tokens * prices.get("input", 0) + usage.output_tokens * prices.get("output", 0)
    return spent / MILLION


def shown(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.1 else f"${dollars:.4f}"


def tokens(count: int) -> str:
    """`950`, `12.3k`, `1.2M`."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < MILLION else f"{count / MILLION:.1f}M"
