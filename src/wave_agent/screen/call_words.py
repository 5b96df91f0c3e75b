"""A tool call in a few words."""

import json
from collections.abc import Mapping
from typing import Any

from wave_agent.text import one_line

_SUBJECTS = ("command", "file_path", "pattern", "path", "url", "query")


def subject(parameters: Mapping[str, Any], project: str) -> str:
    """What a call is about, in a few words."""
    named = next((parameters[key] for key in _SUBJECTS if parameters.get(key)), None)
    if named is None:
        named = json.dumps(parameters, ensure_ascii=False, default=str) if parameters else ""
    return one_line(str(named).removeprefix(f"{project}/"), 120)


def description_of(parameters: Mapping[str, Any]) -> str:
    """What a command is for, in the model's own words."""
    said = parameters.get("description")
    return one_line(said, 100) if isinstance(said, str) and "command" in parameters else ""
