"""Read: a file's lines, numbered."""

import asyncio
import os
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from wave_agent.permissions import Kind
from wave_agent.tools.base import Tool, ToolContext, ToolResult
from wave_agent.tools.encoding import decode, kind_of_binary, printable
from wave_agent.tools.files import FileRefusedError, KnownFiles, read_bytes

_LINES = 2000
_LINE_LENGTH = 2000
_TOTAL = 100_000
"""Characters given at once, however long the lines."""


class ReadInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    file_path: Annotated[str, Meta(min_length=1)]
    offset: Annotated[int, Meta(ge=0, description="First line, counted from 1.")] = 1
    limit: Annotated[int, Meta(gt=0, description="Number of lines.")] = _LINES


class Read(Tool):
    name: ClassVar[str] = "Read"
    description: ClassVar[str] = (
        "Reads a text file: up to 2000 lines, each after its number and a tab, which are not part of the file. For a "
        "part of a long file give offset and limit. A file must be read before Edit or Write may change it."
    )
    kind: ClassVar[Kind] = Kind.READS
    path_fields: ClassVar[tuple[str, ...]] = ("file_path",)
    Input: ClassVar[type[Struct]] = ReadInput

    def __init__(self, known: KnownFiles) -> None:
        self._known = known

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        try:
            return await asyncio.to_thread(self._read, arguments, os.path.join(context.cwd, arguments.file_path))
        except FileRefusedError as refusal:
            return refusal.result()

    def _read(self, call: ReadInput, path: str) -> ToolResult:
        data = read_bytes(path)
        self._known.note(path, data)
        text = decode(data)
        if text is None:
            kind = kind_of_binary(data) or "a binary file"
            raise FileRefusedError(f"{path} is {kind} ({len(data):,} bytes): it cannot be shown as text.")
        if not text.content:
            return _result(path, "[The file is empty]", [], 1, 0)
        lines = printable(text.content).removesuffix("\n").split("\n")
        first = max(call.offset, 1)
        if first > len(lines):
            raise FileRefusedError(f"{path} has only {len(lines):,} lines: offset {first} is behind its end.")
        shown = _within_total([line.removesuffix("\r") for line in lines[first - 1 : first - 1 + call.limit]])
        numbered = "\n".join(f"{number:6d}\t{_cut(line)}" for number, line in enumerate(shown, first))
        after = first + len(shown)
        if after <= len(lines):
            numbered += f"\n[Lines {first} to {after - 1} of {len(lines):,}. The next is offset {after}]"
        return _result(path, numbered, shown, first, len(lines))


def _within_total(lines: list[str]) -> list[str]:
    """As many of the lines as may be given at once, but at least one."""
    room = _TOTAL
    for count, line in enumerate(lines):
        room -= min(len(line), _LINE_LENGTH)
        if room < 0 and count:
            return lines[:count]
    return lines


def _cut(line: str) -> str:
    if len(line) <= _LINE_LENGTH:
        return line
    return f"{line[:_LINE_LENGTH]} [… {len(line) - _LINE_LENGTH:,} more characters in this line]"


def _result(path: str, content: str, shown: list[str], first: int, total: int) -> ToolResult:
    file = {
        "content": "\n".join(shown),
        "filePath": path,
        "numLines": len(shown),
        "startLine": first,
        "totalLines": total,
    }
    return ToolResult(content=content, response={"file": file})
