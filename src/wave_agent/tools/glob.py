"""Glob: finds files by name."""

from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from wave_agent.permissions.decision import ToolKind
from wave_agent.tools.base import BuiltinTool, ToolContext, ToolInputError, ToolResult
from wave_agent.tools.files import FileRefusedError

_LIMIT = 500


class GlobInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pattern: Annotated[str, Meta(min_length=1)]
    path: Annotated[str, Meta(description="Directory; default: where the session started.")] = ""


class Glob(BuiltinTool):
    name: ClassVar[str] = "Glob"
    description: ClassVar[str] = (
        "Finds files by name, such as *.py (at any depth), src/**/*.{ts,tsx} or docs/*. Sorted by name; skips .git and "
        "what .gitignore excludes."
    )
    brief: ClassVar[str] = "Finds files by name, such as *.py or docs/*.md."
    brief_fields: ClassVar[tuple[str, ...]] = ("pattern",)
    kind: ClassVar[ToolKind] = ToolKind.READS
    path_fields: ClassVar[tuple[str, ...]] = ("path",)
    Input: ClassVar[type[Struct]] = GlobInput

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        from wave_agent.tools.search.client import run_search, search_root  # lazy: many sessions search nothing

        call: GlobInput = arguments
        try:
            root, seen = search_root(call.path, context, only_directory=True)
            request = {"kind": "glob", "path": root, "pattern": _inside(call.pattern, root), "head_limit": _LIMIT}
            answer = await run_search(request, seen, context)
        except FileRefusedError as refusal:
            return refusal.result()
        lines = answer["lines"] or ["No files found.", "[Glob looks at names only: to search in files, use Grep]"]
        if answer["cut"]:
            shown, there = len(answer["lines"]), answer["files"]
            lines.append(f"[{shown:,} of {there:,} files shown: use a narrower pattern or path]")
        return ToolResult(
            content="\n".join([*lines, *(f"[{note}]" for note in answer["notes"])]),
            response={
                "filenames": answer["filenames"],
                "numFiles": len(answer["filenames"]),
                "truncated": answer["cut"],
            },
        )


def _inside(pattern: str, root: str) -> str:
    """The pattern relative to the root: permission was requested for the root only."""
    if pattern.startswith(root.rstrip("/") + "/"):
        pattern = pattern[len(root.rstrip("/")) + 1 :]
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolInputError(f"Glob: the pattern leaves {root}: pass the directory as path")
    return pattern
