"""`apply_patch`: reads the text of a patch as the changes it makes to files. Pure."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_MARK = re.compile(r"\s*\*\*\* (?P<what>Add File|Update File|Delete File|Move to): ?(?P<path>.*?)\s*")


class PatchError(Exception):
    """The text is not a patch, or names no files."""


class PatchedFile(Struct, frozen=True, kw_only=True):
    """What a patch does to one file."""

    kind: str
    """`add`, `update` or `delete`."""
    path: str
    moved_to: str | None = None
    old: str = ""
    """The lines it expects, of all hunks."""
    new: str = ""
    """The lines it leaves, of all hunks."""


_KINDS = {"Add File": "add", "Update File": "update", "Delete File": "delete"}


class _Change:
    """A file of the patch, while its lines are read."""

    def __init__(self, kind: str, path: str) -> None:
        self.kind, self.path, self.moved_to = kind, path, ""
        self.old: list[str] = []
        self.new: list[str] = []

    def line(self, text: str) -> None:
        """A line without a sign is context: patches lose leading blanks."""
        sign, rest = text[:1], text[1:]
        if sign == "+":
            self.new.append(rest)
        elif sign == "-":
            self.old.append(rest)
        elif not text.startswith(("@@", "***")):
            self.old.append(rest if sign == " " else text)
            self.new.append(rest if sign == " " else text)

    def done(self) -> PatchedFile:
        return PatchedFile(
            kind=self.kind,
            path=self.path,
            moved_to=self.moved_to or None,
            old="\n".join(self.old),
            new="\n".join(self.new),
        )


def read_patch(text: str) -> tuple[PatchedFile, ...]:
    """The changes a patch makes, in order. A marker counts wherever it is, so no file is overlooked.

    Raises `PatchError`.
    """
    _, begins, body = text.partition(BEGIN)
    if not begins:
        raise PatchError(f'it does not contain "{BEGIN}"')
    found: list[_Change] = []
    ended = False
    for line in body.split("\n")[1:]:
        mark = _MARK.fullmatch(line)
        ended = line.strip() == _END or (ended and mark is None)
        if mark is None:
            if found and not ended:
                found[-1].line(line)
        elif not mark["path"]:
            raise PatchError(f'"{line.strip()}" names no file')
        elif mark["what"] in _KINDS:
            found.append(_Change(_KINDS[mark["what"]], mark["path"]))
        elif found:
            found[-1].moved_to = mark["path"]
        else:
            raise PatchError(f'"{line.strip()}" comes before any file')
    if not found:
        raise PatchError("it changes no file")
    return tuple(change.done() for change in found)


def calls_of(change: PatchedFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls of our tools that make the same change: what guards of files and guards of commands look for."""
    if change.kind == "add":
        yield "Write", {"file_path": change.path, "content": change.new}
        return
    for path in filter(None, (change.path, change.moved_to)):
        yield "Edit", {"file_path": path, "old_string": change.old, "new_string": change.new}
    if change.moved_to is not None:
        yield "Bash", {"command": shlex.join(["mv", "--", change.path, change.moved_to])}
    if change.kind == "delete":
        yield "Bash", {"command": shlex.join(["rm", "--", change.path])}
