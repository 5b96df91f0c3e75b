"""Which models get a shorter system prompt, fewer tools and one call at a time."""

import re
from enum import StrEnum
from itertools import pairwise

from wave_agent.lazy_regex import lazy_regex

SMALL_WINDOW = 16_384
"""In tokens. Up to this size of the window, all tools with their full descriptions leave too little for the work."""
SMALL_BILLIONS = 5
"""Models with fewer parameters than this often lose track of many tools, or of several calls in one answer."""
_SIZE = lazy_regex(r"(?:^|[-_:/ ])(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z0-9])", re.IGNORECASE)


class Profile(StrEnum):
    """How a session presents itself to the model; `models.NAME.profile` in the settings."""

    FULL = "full"
    SMALL = "small"


def profile_of(stated: str | None, name: str, window: int | None, parameters: int | None) -> Profile:
    """The stated profile, or the one that fits a model of this name, with this window and number of parameters."""
    if stated is not None:
        return Profile(stated)
    billions = parameters / 1e9 if parameters else billions_in(name)
    small = (window is not None and window <= SMALL_WINDOW) or (billions is not None and billions < SMALL_BILLIONS)
    return Profile.SMALL if small else Profile.FULL


def billions_in(name: str) -> float | None:
    """The number of parameters that the name of a model states (`qwen2.5-coder:1.5b`), in billions."""
    if not any(digit.isdigit() and unit in "bBmM" for digit, unit in pairwise(name)):
        return None  # without compiling the expression
    sizes = [float(number) / (1 if unit in "bB" else 1000) for number, unit in _SIZE.findall(name)]
    return max(sizes, default=None)
