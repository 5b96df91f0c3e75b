"""Edit: replaces one passage of a file, or every occurrence of it."""

import os
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.marks import ESCAPED, without_marks
from wave_agent.permissions.decision import ToolKind
from wave_agent.system.real_files import Seen
from wave_agent.tools.base import BuiltinTool, ToolContext, ToolInputError, ToolResult
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.files import FileRefusedError, KnownFiles, existing, missing, replace, uninterrupted

if TYPE_CHECKING:  # loaded with the first file
    from wave_agent.tools.encoding import DecodedText

_SURROGATE = lazy_regex("[\ud800-\udfff]")
_NEWLINE = lazy_regex(r"\r?\n")
_SHOWN = 2_000
"""Characters of a passage that is shown because the model wrote it with other whitespace."""


class EditInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    file_path: Annotated[str, Meta(min_length=1)]
    old_string: Annotated[str, Meta(min_length=1, description="As it is in the file, without line numbers.")]
    new_string: str
    replace_all: bool = False


class Edit(BuiltinTool):
    name: ClassVar[str] = "Edit"
    description: ClassVar[str] = (
        "Replaces old_string with new_string in a file that has been read. old_string must match exactly, including "
        "whitespace, and occur once: add surrounding lines until it does, or set replace_all."
    )
    brief: ClassVar[str] = "Replaces old_string, exactly as it is in the file, with new_string."
    brief_fields: ClassVar[tuple[str, ...]] = (
        "file_path",
        "old_string",
        "new_string",
        "replace_all",
    )
    kind: ClassVar[ToolKind] = ToolKind.EDITS
    path_fields: ClassVar[tuple[str, ...]] = ("file_path",)
    notes_changes: ClassVar[bool] = True
    Input: ClassVar[type[Struct]] = EditInput

    def __init__(self, known: KnownFiles, changes: FileChanges) -> None:
        self._files = EditableFiles(known, changes)

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: EditInput = arguments
        swap = Replacement(old=call.old_string, new=call.new_string, everywhere=call.replace_all)
        if problem := swap.problem:
            raise ToolInputError(f"Edit: {problem}")
        try:
            path = os.path.join(context.cwd, call.file_path)
            return await uninterrupted(partial(self._edit, call, swap, path, context.seen(path)))
        except FileRefusedError as refusal:
            return refusal.result()

    def _edit(self, call: EditInput, swap: "Replacement", path: str, seen: Seen | None) -> ToolResult:
        counts: list[int] = []

        def change(text: str) -> str:
            after, count = swap.apply(text, path)
            counts.append(count)
            return after

        edited = self._files.edit(path, seen, change)
        (count,) = counts
        times = "" if count == 1 else f" {count:,} times"
        return ToolResult(
            content=f"Edited {path}{times}.\n{edited.diff}",
            response={
                "filePath": path,
                "success": True,
                "oldString": call.old_string,
                "newString": call.new_string,
                "replaceAll": call.replace_all,
                "replacements": count,
                "diff": edited.diff,
            },
            original=edited.before,
        )


class EditedText(Struct, frozen=True):
    """A file's text before and after an edit, as the model may see it."""

    before: str
    after: str

    @property
    def diff(self) -> str:
        from wave_agent.tools.diff import unified_diff  # lazy: many sessions edit nothing

        return unified_diff(self.before, self.after)


class EditableFiles:
    """Text files that the model has read, and may therefore edit."""

    def __init__(self, known: KnownFiles, changes: FileChanges) -> None:
        self._known = known
        self._changes = changes

    def edit(self, path: str, seen: Seen | None, change: Callable[[str], str], create: str = "Write") -> EditedText:
        """Changes a file, atomically and only if the model knows its content. `create` is the tool for a file that does
        not exist. Raises `FileRefusedError`, as `change` may."""
        from wave_agent.tools.encoding import decode, printable  # lazy: see above

        with self._known.lock:
            before = existing(path, seen)
            if before is None:
                raise FileRefusedError(f"{missing(path)} Use {create} to create a file.")
            self._known.check(path, before)
            text = decode(before)
            if text is None:
                raise FileRefusedError(f"{path} is not a text file.")
            after = change(text.content)
            data = _encoded(text, after, path)
            replace(path, data, seen)
            self._known.note(path, data)
            self._changes.note(path, before, data)
        return EditedText(printable(text.content), printable(after))


class Replacement(Struct, frozen=True, kw_only=True):
    """One passage of a text, and what takes its place."""

    old: str
    new: str
    everywhere: bool = False

    @property
    def problem(self) -> str:
        """Why it cannot be meant, whatever the text."""
        if self.old == self.new:
            return "old_string and new_string are identical: there is nothing to change"
        return why_unwritable(self.new, "new_string")

    def apply(self, text: str, path: str) -> tuple[str, int]:
        """The new text and the number of replacements. Raises `FileRefusedError` unless the meaning is clear."""
        # The model cannot tell the two kinds of newline apart, so its newlines match either.
        has_crlf = "\r\n" in text
        pieces = _NEWLINE.split(self.old) if has_crlf else [self.old]
        pattern = re.compile(r"\r?\n".join(re.escape(piece) for piece in pieces))
        first = pattern.search(text)
        if first is None:
            raise FileRefusedError(f"old_string does not occur in {path}.{_hint(text, self.old)}")
        # Not `findall`: with two overlapping matches, it is just as unclear which one is meant.
        if not self.everywhere and pattern.search(text, first.start() + 1):
            where = [text.count("\n", 0, found.start()) + 1 for found in pattern.finditer(text)]
            lines = ", ".join(str(line) for line in where[:10]) + (", …" if len(where) > 10 else "")
            raise FileRefusedError(
                f"old_string occurs more than once in {path} (lines {lines}). Add surrounding lines, or set "
                "replace_all."
            )
        usual = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"

        def new(match: re.Match[str]) -> str:
            if not has_crlf:
                return self.new
            newline = _NEWLINE.search(match[0])
            return _NEWLINE.sub(newline[0] if newline else usual, self.new)

        return pattern.subn(new, text, count=0 if self.everywhere else 1)


def why_unwritable(text: str, field: str) -> str:
    """Why no file can contain this text, the value of a field. Empty: one can."""
    return f"{field} contains a lone surrogate, which no file can contain" if _SURROGATE.search(text) else ""


def _hint(text: str, old: str) -> str:
    """Why it may not have been found."""
    if re.match(r"\s*\d+\t", old):
        return " It seems to start with a line number as shown by Read: omit those."
    if old in without_marks(text):
        return f" In what you were shown, {ESCAPED}: write the file's own characters."
    if found := _but_for_blanks(text, old):
        first, last = (text.count("\n", 0, at) + 1 for at in found)
        where = f"Line {first} differs" if first == last else f"Lines {first} to {last} differ"
        return f" {where} from it in whitespace only{_passage(text, *found)}"
    return " Read it again, and copy the passage exactly."


def _passage(text: str, start: int, end: int) -> str:
    """What is there, from the beginning of its line if that is blank: it says no more than the model knows, except for
    the whitespace."""
    line = text.rfind("\n", 0, start) + 1
    found = text[start if text[line:start].strip() else line : end].replace("\r\n", "\n")
    if len(found) > _SHOWN or without_marks(found) != found:
        return ": read the file again, and copy the passage exactly."
    return f". Copy this exactly:\n{found}"


def _but_for_blanks(text: str, old: str) -> tuple[int, int] | None:
    """Where the text has the same characters with other white space, or with some where `old` has none: formatters
    also put blanks into an expression."""
    words = old.split()
    if not words:
        return None
    if found := re.search(r"\s+".join(re.escape(word) for word in words), text):
        return found.span()
    wanted = "".join(words)
    at = "".join(text.split()).find(wanted)
    if at < 0:
        return None
    places = [place for place, character in enumerate(text) if not character.isspace()]
    return places[at], places[at + len(wanted) - 1] + 1


def _encoded(text: "DecodedText", after: str, path: str) -> bytes:
    try:
        return text.encode(after)
    except UnicodeEncodeError as error:
        wrong = error.object[error.start]
        raise FileRefusedError(
            f"{path} is encoded as {text.encoding}, which cannot represent U+{ord(wrong):04X} of new_string. Use "
            "another character, or rewrite the file with Write (as UTF-8)."
        ) from None
