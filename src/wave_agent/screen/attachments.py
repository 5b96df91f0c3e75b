"""Attachments to the next prompt: output of the user's shell lines, and undone changes."""

import re

from msgspec import Struct

from wave_agent.text import clip
from wave_agent.tools.changes.turns import TakenBack

_ATTACHED = re.compile(r"\n\n<from-the-user kind=\"([a-z]+)\" what=\"([^\"\n]*)\">\n.*?\n</from-the-user>", re.DOTALL)


class Attachment(Struct, frozen=True):
    kind: str
    """`shell` or `undo`."""
    what: str
    text: str

    def __str__(self) -> str:
        what = self.what.replace('"', "'").replace("\n", " ")
        inside = clip(self.text).replace("</from-the-user", "<\\/from-the-user")
        return f'\n\n<from-the-user kind="{self.kind}" what="{what}">\n{inside}\n</from-the-user>'


def attachment_of(undone: TakenBack) -> Attachment | None:
    """Tells the model which files are as they were before; None if none is."""
    lines = [f"reverted: {path}" for path in undone.restored]
    lines += [f"removed new file: {path}" for path in undone.removed]
    return Attachment("undo", "file changes undone", "\n".join(lines)) if lines else None


def attach(prompt: str, attachments: list[Attachment]) -> str:
    return prompt + "".join(map(str, attachments))


def split(prompt: str) -> tuple[str, list[str]]:
    """The prompt as typed, and one line per attachment."""
    return _ATTACHED.sub("", prompt), [f"{kind}: {what}" for kind, what in _ATTACHED.findall(prompt)]
