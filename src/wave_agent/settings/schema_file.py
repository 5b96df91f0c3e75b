"""The JSON Schema beside a settings file, which editors read: where it is, and how settings refer to it."""

import os
from pathlib import Path

from wave_agent.formats.json_edits import put
from wave_agent.formats.strict_json import parse_document

NAME = "settings.schema.json"
REFERENCE = f"./{NAME}"
"""As `$schema`: found without a network, and wherever the project is cloned to."""
SETTINGS = ("settings.json", "settings.local.json")


def with_schema(text: str, file: Path) -> str:
    """The text of a settings file with a reference to the schema, if that is beside it and the text names none.

    Raises `StrictJSONError` and `TypeError` as `put` does.
    """
    return referring(text) if os.path.isfile(file.parent / NAME) else text


def referring(text: str) -> str:
    """The same, whether the schema is there or not."""
    return text if text.strip("\ufeff \t\r\n") and ("$schema",) in parse_document(text).spans else _put(text)


def _put(text: str) -> str:
    return put(text, "$schema", REFERENCE)
