"""MultiEdit: several replacements in one file, all of them or none."""

import os
from functools import partial
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from wave_agent.permissions.decision import ToolKind
from wave_agent.system.real_files import Seen
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.edit import EditableFiles, Replacement
from wave_agent.tools.files import FileRefusedError, KnownFiles, uninterrupted

_MOST = 200


class EditStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    old_string: Annotated[str, Meta(min_length=1)]
    new_string: str
    replace_all: bool = False


class MultiEditInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    file_path: Annotated[str, Meta(min_length=1)]
    edits: Annotated[
        list[EditStep], Meta(min_length=1, max_length=_MOST, description="In order: each sees the result of the last.")
    ]


class MultiEdit(Tool):
    """Not offered to models, which do as well with several calls of Edit. Those that know it from elsewhere may call
    it."""

    name: ClassVar[str] = "MultiEdit"
    description: ClassVar[str] = (
        "Makes several replacements in a file that has been read, in order: all of them or, if one fails, none. Each "
        "follows the rules of Edit."
    )
    dispensable: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = ToolKind.EDITS
    path_fields: ClassVar[tuple[str, ...]] = ("file_path",)
    notes_changes: ClassVar[bool] = True
    Input: ClassVar[type[Struct]] = MultiEditInput

    def __init__(self, known: KnownFiles, changes: FileChanges) -> None:
        self._files = EditableFiles(known, changes)

    def other_names(self) -> tuple[str, ...]:
        return ("Edit",)

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: MultiEditInput = arguments
        swaps = [Replacement(old=one.old_string, new=one.new_string, everywhere=one.replace_all) for one in call.edits]
        for number, swap in enumerate(swaps, 1):
            if swap.problem:
                raise ToolInputError(f"MultiEdit: edit {number} of {len(swaps)}: {swap.problem}")
        try:
            path = os.path.join(context.cwd, call.file_path)
            return await uninterrupted(partial(self._edit, call, swaps, path, context.seen(path)))
        except FileRefusedError as refusal:
            return refusal.result()

    def _edit(self, call: MultiEditInput, swaps: list[Replacement], path: str, seen: Seen | None) -> ToolResult:
        counts: list[int] = []

        def change(text: str) -> str:
            for number, swap in enumerate(swaps, 1):
                try:
                    text, count = swap.apply(text, path)
                except FileRefusedError as refusal:
                    raise FileRefusedError(
                        f"Edit {number} of {len(swaps)}: {refusal} None of the edits was made."
                    ) from None
                counts.append(count)
            return text

        edited = self._files.edit(path, seen, change)
        return ToolResult(
            content=f"Made {len(swaps)} {'edit' if len(swaps) == 1 else 'edits'} in {path}.\n{edited.diff}",
            response={
                "filePath": path,
                "success": True,
                "edits": [
                    {"old_string": one.old_string, "new_string": one.new_string, "replace_all": one.replace_all}
                    for one in call.edits
                ],
                "replacements": counts,
                "diff": edited.diff,
            },
            original=edited.before,
        )
