"""Grep: files by their content."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field

from wave_agent.permissions import Kind
from wave_agent.tools.base import Tool, ToolContext, ToolResult
from wave_agent.tools.files import FileRefusedError
from wave_agent.tools.searching import run_search, search_root

_LIMIT = 250


class GrepInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(min_length=1)]
    path: Annotated[str, Meta(description="File or directory; the working directory of the session if left out.")] = ""
    glob: Annotated[str, Meta(description="Only files such as *.py or src/**/*.{ts,tsx}; ! in front: only others.")] = (
        ""
    )
    output_mode: Literal["files_with_matches", "content", "count"] = "files_with_matches"
    ignore_case: bool = field(default=False, name="-i")
    numbers: Annotated[bool, Meta(description="Line numbers.")] = field(default=True, name="-n")
    after: Annotated[int, Meta(ge=0, description="Lines of context after; content only.")] = field(default=0, name="-A")
    before: Annotated[int, Meta(ge=0, description="Before.")] = field(default=0, name="-B")
    around: Annotated[int, Meta(ge=0, description="Both.")] = field(default=0, name="-C")
    head_limit: Annotated[int, Meta(ge=0, description="Lines of output; 0 for no limit.")] = _LIMIT
    multiline: Annotated[bool, Meta(description="Matches may span lines; . matches newlines.")] = False


class Grep(Tool):
    name: ClassVar[str] = "Grep"
    description: ClassVar[str] = (
        "Searches the contents of files for a regular expression. Sorted by name; binary files, .git and what "
        ".gitignore names are left out."
    )
    kind: ClassVar[Kind] = Kind.READS
    path_fields: ClassVar[tuple[str, ...]] = ("path",)
    Input: ClassVar[type[Struct]] = GrepInput

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: GrepInput = arguments
        try:
            request = _request(call, search_root(call.path, context))
            answer = await run_search(request, context)
        except FileRefusedError as refusal:
            return refusal.result()
        shown: list[str] = answer["lines"]
        lines = shown or ["No matches found."]
        notes: list[str] = answer["notes"]
        if answer["cut"]:
            notes.append(f"Cut after {len(shown)} lines: narrow the search with path or glob, or raise head_limit")
        if not shown and "\\n" in call.pattern and not call.multiline:
            notes.append("To match across lines set multiline")
        return ToolResult(
            content="\n".join([*lines, *(f"[{note}]" for note in notes)]),
            response={
                "mode": call.output_mode,
                "filenames": answer["filenames"],
                "numFiles": len(answer["filenames"]),
                "numLines": len(shown),
                "content": "\n".join(shown) if call.output_mode == "content" else "",
                "truncated": answer["cut"],
            },
        )


def _request(call: GrepInput, root: str) -> dict[str, Any]:
    return {
        "kind": "grep",
        "path": root,
        "pattern": call.pattern,
        "glob": call.glob,
        "output_mode": call.output_mode,
        "ignore_case": call.ignore_case,
        "numbers": call.numbers,
        "after": max(call.after, call.around),
        "before": max(call.before, call.around),
        "head_limit": call.head_limit,
        "multiline": call.multiline,
    }
