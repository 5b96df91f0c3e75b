"""Grep: searches the contents of files."""

import os
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from wave_agent.permissions.decision import ToolKind
from wave_agent.tools.base import BuiltinTool, ToolContext, ToolResult
from wave_agent.tools.files import FileRefusedError

_LIMIT = 250
_NARROW = "Narrow the search with path or glob"


class GrepInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(min_length=1)]
    path: Annotated[str, Meta(description="File or directory; default: where the session started.")] = ""
    glob: Annotated[str, Meta(description="Such as *.py or src/**/*.{ts,tsx}; ! excludes.")] = ""
    output_mode: (
        Annotated[
            Literal["files_with_matches", "content", "count"],
            Meta(description="Default: content for a file, files_with_matches for a directory."),
        ]
        | UnsetType
    ) = UNSET
    ignore_case: bool = field(default=False, name="-i")
    numbers: Annotated[bool, Meta(description="Line numbers.")] = field(default=True, name="-n")
    after: Annotated[int, Meta(ge=0, description="Context lines after; content only.")] = field(default=0, name="-A")
    before: Annotated[int, Meta(ge=0, description="Before.")] = field(default=0, name="-B")
    around: Annotated[int, Meta(ge=0, description="Both.")] = field(default=0, name="-C")
    head_limit: Annotated[int, Meta(ge=0, description="Lines; default 250, 0: all.")] | UnsetType = UNSET
    multiline: Annotated[bool, Meta(description="Matches may span lines.")] = False


class Grep(BuiltinTool):
    name: ClassVar[str] = "Grep"
    description: ClassVar[str] = (
        "Searches file contents for a regular expression. Sorted by name; skips binary files, .git and what .gitignore "
        "excludes."
    )
    brief: ClassVar[str] = "Finds the files whose text matches a regular expression, or the lines of one file."
    brief_fields: ClassVar[tuple[str, ...]] = (
        "pattern",
        "path",
    )
    kind: ClassVar[ToolKind] = ToolKind.READS
    path_fields: ClassVar[tuple[str, ...]] = ("path",)
    Input: ClassVar[type[Struct]] = GrepInput

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        from wave_agent.tools.search.client import run_search, search_root  # lazy: many sessions search nothing

        call: GrepInput = arguments
        try:
            root, seen = search_root(call.path, context)
            mode = _usual_mode(root) if call.output_mode is UNSET else call.output_mode
            asked = call.head_limit is not UNSET
            answer = await run_search(_request(call, root, mode), seen, context, asked=asked)
        except FileRefusedError as refusal:
            return refusal.result()
        shown: list[str] = answer["lines"]
        lines = shown or ["No matches found."]
        notes: list[str] = answer["notes"]
        if answer["cut"]:
            more = f"{_NARROW}, or raise head_limit" if answer["by_limit"] else f"{_NARROW}: one result holds no more"
            notes.append(f"The first {len(shown):,} lines are shown, and there are more. {more}")
        if not shown and "\\n" in call.pattern and not call.multiline:
            notes.append("Set multiline to match across lines")
        if not shown and call.glob:
            from wave_agent.tools.search.gitignore import has_open_brace  # lazy: few searches find nothing

            if has_open_brace(call.glob):
                notes.append(f"The glob {call.glob} has a {{ without a }}, so it is matched literally")
        return ToolResult(
            content="\n".join([*lines, *(f"[{note}]" for note in notes)]),
            response={
                "mode": mode,
                "filenames": answer["filenames"],
                "numFiles": len(answer["filenames"]),
                "numLines": len(shown),
                "content": "\n".join(shown) if mode == "content" else "",
                "truncated": answer["cut"],
            },
            long=asked,
        )


def _usual_mode(root: str) -> str:
    """If you search one file, you know its name."""
    return "files_with_matches" if os.path.isdir(root) else "content"


def _request(call: GrepInput, root: str, mode: str) -> dict[str, Any]:
    return {
        "kind": "grep",
        "path": root,
        "pattern": call.pattern,
        "glob": call.glob,
        "output_mode": mode,
        "ignore_case": call.ignore_case,
        "numbers": call.numbers,
        "after": max(call.after, call.around),
        "before": max(call.before, call.around),
        "head_limit": _LIMIT if call.head_limit is UNSET else call.head_limit,
        "multiline": call.multiline,
    }
