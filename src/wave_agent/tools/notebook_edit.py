"""NotebookEdit: replaces, inserts or deletes one cell of a notebook."""

import os
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from wave_agent.formats.notebook_edits import (
    Notebook,
    NotebookError,
    cell_name,
    delete_cell,
    insert_cell,
    read_notebook,
    replace_cell,
)
from wave_agent.permissions.decision import ToolKind
from wave_agent.system.real_files import Seen
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.diff import unified_diff
from wave_agent.tools.edit import EditableFiles, why_unwritable
from wave_agent.tools.files import FileRefusedError, KnownFiles, uninterrupted

EditMode = Literal["replace", "insert", "delete"]


class NotebookEditInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    notebook_path: Annotated[str, Meta(min_length=1)]
    cell_id: Annotated[str, Meta(description="As shown by Read. insert: the cell before; default: at the start.")] = ""
    new_source: str = ""
    cell_type: Annotated[Literal["code", "markdown"], Meta(description="Needed to insert.")] | UnsetType = UNSET
    edit_mode: EditMode = "replace"


class NotebookEdit(Tool):
    """Offered only in projects with notebooks, but may be called in any."""

    name: ClassVar[str] = "NotebookEdit"
    description: ClassVar[str] = (
        "Replaces the source of one cell of a notebook (.ipynb) that has been read, inserts a cell, or deletes one. "
        "The outputs of a changed code cell are removed."
    )
    dispensable: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = ToolKind.EDITS
    path_fields: ClassVar[tuple[str, ...]] = ("notebook_path",)
    notes_changes: ClassVar[bool] = True
    Input: ClassVar[type[Struct]] = NotebookEditInput

    def __init__(self, known: KnownFiles, changes: FileChanges) -> None:
        self._files = EditableFiles(known, changes)

    def other_names(self) -> tuple[str, ...]:
        return ("Edit",)

    def parse(self, tool_input: Mapping[str, Any]) -> Any:
        call: NotebookEditInput = super().parse(tool_input)
        if call.edit_mode == "insert" and call.cell_type is UNSET:
            raise ToolInputError("NotebookEdit: invalid input: to insert a cell, say its cell_type: code or markdown")
        if call.edit_mode != "insert" and not call.cell_id:
            raise ToolInputError(f"NotebookEdit: invalid input: to {call.edit_mode} a cell, say its cell_id")
        if call.edit_mode != "delete" and "new_source" not in tool_input:
            raise ToolInputError("NotebookEdit: invalid input: new_source is missing")
        if problem := why_unwritable(call.new_source, "new_source"):
            raise ToolInputError(f"NotebookEdit: {problem}")
        return call

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: NotebookEditInput = arguments
        try:
            path = os.path.join(context.cwd, call.notebook_path)
            if not path.endswith(".ipynb"):
                raise FileRefusedError(f"{path} is not a notebook (.ipynb). Use Edit.")
            return await uninterrupted(partial(self._edit, call, path, context.seen(path)))
        except FileRefusedError as refusal:
            return refusal.result()

    def _edit(self, call: NotebookEditInput, path: str, seen: Seen | None) -> ToolResult:
        step = _Step(call)

        def change(text: str) -> str:
            try:
                return step.apply(read_notebook(text))
            except NotebookError as error:
                raise FileRefusedError(f"{path}: {error}.") from None

        edited = self._files.edit(path, seen, change)
        diff = unified_diff(_ended(step.before), _ended("" if call.edit_mode == "delete" else call.new_source))
        return ToolResult(
            content=f"{_DONE[call.edit_mode]} cell {step.cell} of {path}.\n{diff}".rstrip(),
            response={
                "notebook_path": path,
                "filePath": path,
                "success": True,
                "cell_id": step.cell,
                "cell_type": step.cell_type,
                "language": step.language,
                "edit_mode": call.edit_mode,
                "new_source": call.new_source,
                "diff": edited.diff,
            },
            original=edited.before,
        )


def _ended(source: str) -> str:
    """The last line of a cell needs no end, so its absence is not worth a remark."""
    return source if source.endswith("\n") or not source else f"{source}\n"


_DONE: Mapping[EditMode, str] = {"replace": "Replaced", "insert": "Inserted", "delete": "Deleted"}


class _Step:
    """One edit of a notebook, and what is known about it afterwards."""

    def __init__(self, call: NotebookEditInput) -> None:
        self._call = call
        self.cell = ""
        self.cell_type = ""
        self.language = ""
        self.before = ""

    def apply(self, notebook: Notebook) -> str:
        """The new text. Raises `NotebookError`."""
        self.language = notebook.language
        return _STEPS[self._call.edit_mode](self, notebook)

    def replace(self, notebook: Notebook) -> str:
        at = self._found(notebook)
        new_type = None if self._call.cell_type is UNSET else self._call.cell_type
        self.cell_type = new_type or self.cell_type
        return replace_cell(notebook, at, self._call.new_source, new_type)

    def delete(self, notebook: Notebook) -> str:
        return delete_cell(notebook, self._found(notebook))

    def insert(self, notebook: Notebook) -> str:
        at = notebook.find(self._call.cell_id) + 1 if self._call.cell_id else 0
        self.cell_type = "code" if self._call.cell_type is UNSET else self._call.cell_type
        name = uuid.uuid4().hex[:8]
        text = insert_cell(notebook, at, self._call.new_source, self.cell_type, name)
        self.cell = cell_name(at, read_notebook(text).cells[at].value)
        return text

    def _found(self, notebook: Notebook) -> int:
        at = notebook.find(self._call.cell_id)
        cell = notebook.cells[at]
        self.cell, self.cell_type, self.before = cell_name(at, cell.value), cell.cell_type, cell.source
        return at


_STEPS: Mapping[EditMode, Callable[[_Step, Notebook], str]] = {
    "replace": _Step.replace,
    "insert": _Step.insert,
    "delete": _Step.delete,
}
