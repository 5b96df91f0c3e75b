"""Remembers which API a server was found to speak."""

import time
from collections.abc import Callable
from pathlib import Path

from wave_agent.models.server_memory import DatedAnswer, ServerMemory

_SECONDS = 30 * 86400.0
"""How long an answer is believed. A server that no longer has the API is asked again anyway."""


class ApiMemory:
    def __init__(self, file: Path, *, now: Callable[[], float] = time.time) -> None:
        self._known = ServerMemory(file, dict[str, DatedAnswer[str]], _SECONDS, now)

    def recall(self, server: str) -> str | None:
        """The API that the server at this URL was found to speak."""
        known = self._known.recall(server)
        return None if known is None else known.value

    def keep(self, server: str, api: str) -> None:
        self._known.keep(server, api)
