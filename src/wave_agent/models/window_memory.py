"""Remembers what servers said about the windows of their models."""

import time
from collections.abc import Callable
from pathlib import Path

from wave_agent.models.server_memory import DatedAnswer, ServerMemory
from wave_agent.models.windows import Window

_SECONDS = 3600.0
"""How long an answer is believed: a server may be started again with another window."""


class WindowMemory:
    def __init__(self, file: Path, *, now: Callable[[], float] = time.time) -> None:
        self._known = ServerMemory(file, dict[str, DatedAnswer[Window | None]], _SECONDS, now)

    def recall(self, server: str, model: str) -> DatedAnswer[Window | None] | None:
        """What the server at this URL said about the model, not long ago. Its value is None if it does not say."""
        return self._known.recall(_key(server, model))

    def keep(self, server: str, model: str, window: Window | None) -> None:
        """A window with a warning is not kept: the user may do what it says, and the next session must notice."""
        if window is None or not window.warning:
            self._known.keep(_key(server, model), window)


def _key(server: str, model: str) -> str:
    return f"{model} {server}"
