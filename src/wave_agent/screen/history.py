"""The prompts of a project, for the arrow keys and Ctrl-R. Kept private to the user.

A prompt that a hook refuses must not reach the disk: it is written down only once it was accepted.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

from wave_agent.system.private_files import make_private

KEPT = 1000
"""Prompts that are read again."""


class History:
    """Old ones first."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.prompts: list[str] = _read(file)
        self._at: int | None = None
        self._draft = ""

    def add(self, prompt: str) -> None:
        """Remembers it for this run."""
        self._at = None
        if prompt and self.prompts[-1:] != [prompt]:
            self.prompts.append(prompt)

    def write(self, prompt: str) -> None:
        """Remembers it for good. A disk that cannot be written costs the memory, not the work."""
        with suppress(OSError):
            make_private(self._file.parent)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with open(descriptor, "ab") as file:
                file.write(json.dumps(prompt).encode() + b"\n")

    def earlier(self, present: str) -> str | None:
        """The prompt before; `present` is what is being written. None: there is none."""
        if self._at is None:
            self._draft, self._at = present, len(self.prompts)
        if self._at == 0:
            return None
        self._at -= 1
        return self.prompts[self._at]

    def later(self) -> str | None:
        """Back towards what was being written."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self.prompts):
            return self.prompts[self._at]
        self._at = None
        return self._draft

    def leave(self) -> None:
        """The user has begun to write."""
        self._at = None

    def search(self, word: str) -> list[str]:
        """Prompts with the word in them, each once, the latest first."""
        found = [prompt for prompt in reversed(self.prompts) if word.lower() in prompt.lower()]
        return list(dict.fromkeys(found))


def _read(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()[-KEPT:]
    except OSError:
        return []
    found: list[str] = []
    for line in lines:
        with suppress(ValueError):
            prompt: object = json.loads(line)
            if isinstance(prompt, str):
                found.append(prompt)
    return found
