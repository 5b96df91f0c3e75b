"""Small JSON files under WAVE_HOME: readable only by the user and replaced atomically."""

import json
import os
from pathlib import Path
from typing import Any, cast

from wave_agent.system.private_files import make_private


def read_object(file: Path) -> dict[str, Any]:
    """The file's content; empty if it is missing or unreadable."""
    try:
        found: object = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def write_object(file: Path, value: dict[str, Any]) -> None:
    """Raises `OSError`."""
    make_private(file.parent)
    temporary = file.with_name(f".{file.name}-{os.urandom(4).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as opened:
        json.dump(value, opened, indent=2, ensure_ascii=False)
    temporary.replace(file)
