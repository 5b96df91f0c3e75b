"""Hook texts that are too long to show: truncated, with the full text in a file."""

import hashlib
import os
from pathlib import Path

from msgspec.structs import replace

from wave_agent.hooks.verdicts import Outcome, Said
from wave_agent.system.private_files import make_private, open_private
from wave_agent.text import TEXT_LIMIT, clip


class LongTexts:
    """Truncates the texts of outcomes."""

    def __init__(self, directory: Path | None) -> None:
        """`directory` is where full texts are kept; None: they are not."""
        self._directory = directory

    def shortened(self, outcome: Outcome) -> Outcome:
        """The outcome with long texts truncated; the full text goes to a file.

        No file is written for an erased prompt: the text may quote it, and it must not reach the disk.
        """
        said = [one.text for texts in outcome.reasons.values() for one in texts]
        said += [one.text for one in (*outcome.contexts, *outcome.refusals)]
        texts = [*said, *(note.text for note in outcome.to_user)]
        if all(len(text) <= TEXT_LIMIT for text in texts):
            return outcome
        keep = not outcome.prompt_erased

        def short(text: str) -> str:
            return text if len(text) <= TEXT_LIMIT else clip(text, whole=self._keep(text) if keep else None)

        def cut(texts: tuple[Said, ...]) -> tuple[Said, ...]:
            return tuple(Said(one.hook, short(one.text)) for one in texts)

        return replace(
            outcome,
            reasons={decision: cut(texts) for decision, texts in outcome.reasons.items()},
            contexts=cut(outcome.contexts),
            refusals=cut(outcome.refusals),
            to_user=tuple(replace(note, text=short(note.text)) for note in outcome.to_user),
        )

    def _keep(self, text: str) -> str | None:
        """The file with the full text."""
        if self._directory is None:
            return None
        content = text.encode(errors="replace")
        file = self._directory / f"hook-{hashlib.sha256(content).hexdigest()[:16]}.txt"
        try:
            make_private(self._directory)
            with os.fdopen(open_private(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as kept:
                kept.write(content)
        except OSError:
            return None  # a full disk must not lose the verdict; the note then names no file
        return str(file)
