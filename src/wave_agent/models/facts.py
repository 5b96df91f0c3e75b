"""Facts about hosted models: used until the settings (`models.NAME`) or the server say otherwise.

Prices change, and differ between regions, tiers and very long requests: check your provider's price list, and put
what you pay into `models.NAME.prices`. Models that anyone can host are not listed, since each host has its own prices.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from wave_agent.models.prices import Prices

AS_OF = "2026-08-08"
"""The date of the table. Source: the providers' price lists, as collected by LiteLLM (MIT license)."""


class ModelFacts(Struct, frozen=True):
    window: int
    """Tokens of the longest request."""
    output: int
    """Tokens of the longest answer."""
    images: bool
    reasoning: bool
    """It can think before it answers, so `--effort` applies."""
    prices: Prices


def _row(window: int, output: int, marks: str, *prices: float) -> ModelFacts:
    return ModelFacts(window, output, "i" in marks, "r" in marks, Prices(*prices))


MODELS: Mapping[str, ModelFacts] = {
    # Window, longest answer, (i)mages and (r)easoning; prices: input, output, cache read, cache write.
    "claude-fable-5": _row(1_000_000, 128_000, "ir", 10, 50, 1, 12.5),
    "claude-opus-5": _row(1_000_000, 128_000, "ir", 5, 25, 0.5, 6.25),
    "claude-sonnet-5": _row(1_000_000, 128_000, "ir", 2, 10, 0.2, 2.5),
    "claude-opus-4-8": _row(1_000_000, 128_000, "ir", 5, 25, 0.5, 6.25),
    "claude-sonnet-4-6": _row(1_000_000, 64_000, "ir", 3, 15, 0.3, 3.75),
    "claude-sonnet-4-5": _row(200_000, 64_000, "ir", 3, 15, 0.3, 3.75),
    "claude-haiku-4-5": _row(200_000, 64_000, "ir", 1, 5, 0.1, 1.25),
    "gpt-5.6": _row(1_050_000, 128_000, "ir", 5, 30, 0.5, 6.25),
    "gpt-5.6-terra": _row(1_050_000, 128_000, "ir", 2, 12, 0.2, 2.5),
    "gpt-5.6-luna": _row(1_050_000, 128_000, "ir", 0.2, 1.2, 0.02, 0.25),
    "gpt-5.5": _row(1_050_000, 128_000, "ir", 5, 30, 0.5),
    "gpt-5.4": _row(1_050_000, 128_000, "ir", 2.5, 15, 0.25),
    "gpt-5.4-mini": _row(272_000, 128_000, "ir", 0.75, 4.5, 0.075),
    "gpt-5.3-codex": _row(272_000, 128_000, "ir", 1.75, 14, 0.175),
    "gpt-5": _row(272_000, 128_000, "ir", 1.25, 10, 0.125),
    "gpt-5-mini": _row(272_000, 128_000, "ir", 0.25, 2, 0.025),
    "gpt-4.1": _row(1_047_576, 32_768, "i", 2, 8, 0.5),
    "gemini-3.6-flash": _row(1_048_576, 65_536, "ir", 1.5, 7.5, 0.15),
    "gemini-3.5-flash-lite": _row(1_048_576, 65_536, "ir", 0.3, 2.5, 0.03),
    "gemini-3.1-pro-preview": _row(1_048_576, 65_536, "ir", 2, 12, 0.2),
    "gemini-2.5-pro": _row(1_048_576, 65_535, "ir", 1.25, 10, 0.125),
    "gemini-2.5-flash": _row(1_048_576, 65_535, "ir", 0.3, 2.5, 0.03),
    "mistral-medium-latest": _row(262_144, 262_144, "ir", 1.5, 7.5),
    "devstral-medium-latest": _row(256_000, 256_000, "", 0.4, 2),
    "deepseek-chat": _row(131_072, 8_192, "", 0.28, 0.42, 0.028),
    "deepseek-reasoner": _row(131_072, 65_536, "r", 0.28, 0.42, 0.028),
    "grok-4.5": _row(500_000, 500_000, "ir", 2, 6, 0.5),
    "grok-code-fast-1": _row(256_000, 256_000, "r", 0.2, 1.5, 0.02),
}

_DATED = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)$")


def _plain(name: str) -> str:
    """Providers spell versions differently: `claude-sonnet-4-5` is `anthropic/claude-sonnet-4.5` elsewhere."""
    return name.rpartition("/")[2].replace(".", "-")


_BY_PLAIN_NAME = {_plain(name): facts for name, facts in MODELS.items()}


def facts_for(name: str) -> ModelFacts | None:
    """None if the model is not in the table. A provider before the name and a date after it make no difference; a
    variant (`:free`) may have other prices."""
    plain = _plain(name)
    return _BY_PLAIN_NAME.get(plain) or _BY_PLAIN_NAME.get(_DATED.sub("", plain))
