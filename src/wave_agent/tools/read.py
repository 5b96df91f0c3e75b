"""Read: a file's lines with numbers, an image, the cells of a notebook, or the text of a PDF."""

import asyncio
import os
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from wave_agent.marks import ESCAPED, is_marked
from wave_agent.permissions.decision import ToolKind
from wave_agent.tools.base import BuiltinTool, ToolContext, ToolResult
from wave_agent.tools.files import FileRefusedError, KnownFiles, read_bytes
from wave_agent.tools.room import NOTES, Room, size_of

if TYPE_CHECKING:  # loaded with the first image
    from wave_agent.tools.images import Picture

_LINES = 2000
_LINE_LENGTH = 2000
_NUMBERS = 10
"""Lines that a note names."""


class ReadInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    file_path: Annotated[str, Meta(min_length=1)]
    offset: Annotated[int, Meta(ge=0, description="First line, from 1.")] = 1
    limit: Annotated[int, Meta(gt=0, description="Default 2000.")] | UnsetType = UNSET


class Read(BuiltinTool):
    name: ClassVar[str] = "Read"
    description: ClassVar[str] = (
        "Reads a text file: up to 2000 lines, each prefixed with its number and a tab, which are not part of the file. "
        "For a part of a long file set offset and limit. Also reads images, notebooks (as cells) and PDFs (as text). A "
        "file must be read before Edit or Write may change it."
    )
    brief: ClassVar[str] = "Reads a file, with line numbers. Read a file before you edit it."
    brief_fields: ClassVar[tuple[str, ...]] = ("file_path",)
    kind: ClassVar[ToolKind] = ToolKind.READS
    path_fields: ClassVar[tuple[str, ...]] = ("file_path",)
    Input: ClassVar[type[Struct]] = ReadInput

    def __init__(self, known: KnownFiles) -> None:
        self._known = known

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: ReadInput = arguments
        path = os.path.join(context.cwd, call.file_path)
        try:
            data = await asyncio.to_thread(read_bytes, path, context.seen(path))
            result = await _shown(call, path, data, context)
        except FileRefusedError as refusal:
            return refusal.result()
        self._known.note(path, data)  # only now: the model must not overwrite what it was not shown
        return result


async def _shown(call: ReadInput, path: str, data: bytes, context: ToolContext) -> ToolResult:
    from wave_agent.tools.encoding import IMAGES  # lazy: no file is read before the first answer

    if data.startswith(IMAGES):
        from wave_agent.tools.images import picture_in  # lazy: few sessions read one

        picture = picture_in(data)
        if picture is not None:
            return await _image(picture, path, data, context)
    if data.startswith(b"%PDF-"):
        from wave_agent.tools.pdf import pdf_lines  # lazy: few sessions read one

        return _page(call, path, await pdf_lines(path, data, context), context.room(asked=call.limit is not UNSET))
    return await asyncio.to_thread(_text, call, path, data, context.room(asked=call.limit is not UNSET))


def _text(call: ReadInput, path: str, data: bytes, room: Room) -> ToolResult:
    from wave_agent.tools.encoding import decode, kind_of_binary  # lazy: see above

    text = decode(data)
    if text is None:
        kind = kind_of_binary(data) or "a binary file"
        raise FileRefusedError(f"{path} is {kind} ({len(data):,} bytes): it cannot be shown as text.")
    if not text.content:
        return _result(path, "[The file is empty]", [], 1, 0)
    lines = None
    if path.endswith(".ipynb"):
        from wave_agent.tools.notebooks import notebook_lines  # lazy: few sessions read one

        lines = notebook_lines(text.content)
    if lines is None:
        lines = text.content.removesuffix("\n").split("\n")
    return _page(call, path, lines, room)


def _page(call: ReadInput, path: str, lines: list[str], room: Room) -> ToolResult:
    """The requested lines, as many as fit."""
    first = max(call.offset, 1)
    if first > len(lines):
        raise FileRefusedError(f"{path} has only {len(lines):,} lines: offset {first} is past its end.")
    from wave_agent.tools.encoding import printable  # lazy: see above

    limit = _LINES if call.limit is UNSET else call.limit
    wanted = [printable(line).removesuffix("\r") for line in lines[first - 1 : first - 1 + limit]]
    numbered = _within(wanted, first, room.without(NOTES))
    shown = wanted[: len(numbered)]
    after = first + len(shown)
    content = "\n".join(numbered)
    if after <= len(lines):
        why = "" if len(shown) == len(wanted) else ", the most one result can hold"
        content += f"\n[Lines {first} to {after - 1} of {len(lines):,}{why}. Continue with offset {after}]"
    if is_marked(content):
        content += _escapes_in(shown, first)
    return _result(path, content, shown, first, len(lines), long=call.limit is not UNSET)


def _escapes_in(lines: list[str], first: int) -> str:
    """A note for a model that copies these lines into Edit or Write."""
    numbers = [str(number) for number, line in enumerate(lines, first) if is_marked(line)]
    more = " …" if len(numbers) > _NUMBERS else ""
    return f"\n[Lines {', '.join(numbers[:_NUMBERS])}{more}: {ESCAPED}. Edit and Write need the file's own characters]"


def _within(lines: list[str], first: int, room: Room) -> list[str]:
    """As many of the lines as fit, numbered, but at least one."""
    numbered: list[str] = []
    characters = size = 0
    for number, line in enumerate(lines, first):
        text = f"{number:6d}\t{_cut(line)}"
        characters += len(text) + 1
        size += size_of(text) + 1
        if numbered and (characters > room.characters or size > room.size):
            break
        numbered.append(text)
    return numbered


def _cut(line: str) -> str:
    if len(line) <= _LINE_LENGTH:
        return line
    return f"{line[:_LINE_LENGTH]} [… {len(line) - _LINE_LENGTH:,} more characters in this line]"


def _result(path: str, content: str, shown: list[str], first: int, total: int, *, long: bool = False) -> ToolResult:
    file = {
        "content": "\n".join(shown),
        "filePath": path,
        "numLines": len(shown),
        "startLine": first,
        "totalLines": total,
    }
    return ToolResult(content=content, response={"file": file}, long=long)


async def _image(picture: "Picture", path: str, data: bytes, context: ToolContext) -> ToolResult:
    """The image, if the model accepts images. Raises a `FileRefusedError` that says what it is, and what to do."""
    size = f"{picture.width} × {picture.height} pixels, {len(data):,} bytes"
    what = f"{path} is a {picture.kind} image ({size})"
    if not await context.takes_images():
        raise FileRefusedError(
            f"{what}, and this model is not known to accept images. Find out what you need with Bash (file, identify, "
            "tesseract), or ask the user what it shows. If the model does accept images, the user can set "
            "models.NAME.images to true in the settings."
        )
    from wave_agent.tools.images import LARGEST, WIDEST  # lazy: few calls read an image

    window = context.window()
    smaller = "Make a smaller copy with Bash, such as `convert FILE -resize 1024x1024 COPY.png`, and Read that."
    if len(data) > LARGEST or max(picture.width, picture.height) > WIDEST:
        raise FileRefusedError(
            f"{what}: too large to be shown; the limit is {LARGEST:,} bytes and {WIDEST:,} pixels per side. {smaller}"
        )
    image = picture.with_content(data)
    if window is not None and image.tokens > window // 4:
        raise FileRefusedError(f"{what}: it would take more than a quarter of the context window. {smaller}")
    file = {
        "filePath": path,
        "type": picture.media_type,
        "originalSize": len(data),
        "dimensions": {"originalWidth": picture.width, "originalHeight": picture.height},
    }
    return ToolResult(
        content=f"{path}: {picture.kind} image, {size}.", response={"type": "image", "file": file}, images=(image,)
    )
