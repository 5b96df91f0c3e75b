"""What the extra `wave-agent[fleet]` brings, loaded only when it is used."""

from importlib import import_module
from typing import Any

from wave_agent.errors import ExportError
from wave_agent.system.extras import install_extra


def load(name: str) -> Any:
    """The module. Raises `ExportError` with the command that installs it."""
    try:
        return import_module(name)
    except ImportError:
        raise ExportError(f"This needs the extra: {install_extra('fleet')}") from None
