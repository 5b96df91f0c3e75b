"""A project's prompt history, for the arrow keys and Ctrl-R. Readable only by the user.

A prompt blocked by a hook must not reach the disk, so prompts are stored only once accepted.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

from wave_agent.system.private_files import make_private

KEPT = 1000
"""Maximum number of prompts loaded."""


class History:
    """Oldest first."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.prompts: list[str] = _read(file)
        self._at: int | None = None
        self._draft = ""

    def add(self, prompt: str) -> None:
        """Remember the prompt for this run."""
        self._at = None
        if prompt and self.prompts[-1:] != [prompt]:
            self.prompts.append(prompt)

    def write(self, prompt: str) -> None:
        """Store the prompt. If the disk is not writable, only the history is lost, not the work."""
        with suppress(OSError):
            make_private(self._file.parent)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with open(descriptor, "ab") as file:
                file.write(json.dumps(prompt).encode() + b"\n")

    def earlier(self, present: str) -> str | None:
        """The previous prompt, or None. `present` is the text being edited."""
        if self._at is None:
            self._draft, self._at = present, len(self.prompts)
        if self._at == 0:
            return None
        self._at -= 1
        return self.prompts[self._at]

    def later(self) -> str | None:
        """The next prompt, ending at the text being edited."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self.prompts):
            return self.prompts[self._at]
        self._at = None
        return self._draft

    def leave(self) -> None:
        """Reset the position: the user started typing."""
        self._at = None

    def search(self, word: str) -> list[str]:
        """Prompts that contain the word, without duplicates, latest first."""
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
