"""Write: creates or replaces a whole file."""

import os
from functools import partial
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from wave_agent.permissions.decision import ToolKind
from wave_agent.system.real_files import Seen
from wave_agent.tools.base import BuiltinTool, ToolContext, ToolInputError, ToolResult
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.files import FileRefusedError, KnownFiles, existing, replace, uninterrupted

_REPLACES = " It would replace the whole file: to change a part or to add to it, use Edit instead."


class WriteInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    file_path: Annotated[str, Meta(min_length=1)]
    content: str


class Write(BuiltinTool):
    name: ClassVar[str] = "Write"
    description: ClassVar[str] = (
        "Writes a whole file (UTF-8), creating directories as needed. An existing file must have been read before, and "
        "keeps its line endings. To change a part of a file use Edit."
    )
    brief: ClassVar[str] = "Writes a whole file. To change a part of a file, use Edit."
    brief_fields: ClassVar[tuple[str, ...]] = (
        "file_path",
        "content",
    )
    kind: ClassVar[ToolKind] = ToolKind.EDITS
    path_fields: ClassVar[tuple[str, ...]] = ("file_path",)
    notes_changes: ClassVar[bool] = True
    Input: ClassVar[type[Struct]] = WriteInput

    def __init__(self, known: KnownFiles, changes: FileChanges) -> None:
        self._known = known
        self._changes = changes

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        try:
            path = os.path.join(context.cwd, arguments.file_path)
            return await uninterrupted(partial(self._write, arguments, path, context.seen(path)))
        except FileRefusedError as refusal:
            return refusal.result()

    def _write(self, call: WriteInput, path: str, seen: Seen | None) -> ToolResult:
        try:
            data = call.content.encode()
        except UnicodeEncodeError:
            raise ToolInputError("Write: content contains a lone surrogate, which no file can contain") from None
        from wave_agent.tools.encoding import decode, like, printable  # lazy: many sessions write nothing

        with self._known.lock:
            before = existing(path, seen)
            if before is not None:
                self._known.check(path, before, _REPLACES)
                data = like(before, data)
            replace(path, data, seen)
            self._known.note(path, data)
            self._changes.note(path, before, data)
        old = None if before is None else decode(before)
        from wave_agent.tools.diff import unified_diff  # lazy: many sessions write nothing

        diff = "" if old is None else unified_diff(printable(old.content), call.content)
        lines = call.content.count("\n") + (not call.content.endswith("\n") and bool(call.content))
        done = "Created" if before is None else "Replaced"
        return ToolResult(
            content=f"{done} {path} ({lines:,} {'line' if lines == 1 else 'lines'})." + (f"\n{diff}" if diff else ""),
            response={
                "filePath": path,
                "success": True,
                "type": "create" if before is None else "update",
                "numLines": lines,
                "diff": diff,
            },
            original=None if old is None else printable(old.content),
        )
