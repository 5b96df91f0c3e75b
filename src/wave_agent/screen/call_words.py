"""A tool call in the model's own words."""

from collections.abc import Mapping
from typing import Any

from wave_agent.text import one_line


def description_of(parameters: Mapping[str, Any]) -> str:
    """What a command is for, in the model's own words."""
    said = parameters.get("description")
    return one_line(said, 100) if isinstance(said, str) and "command" in parameters else ""
