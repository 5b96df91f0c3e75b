"""A tool call as an editor shows it: kind, title, places, changes and results."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from acp.helpers import image_block, text_block, tool_content, tool_diff_content
from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    TerminalToolCallContent,
    ToolCallLocation,
    ToolKind,
)
from msgspec import Struct

from wave_agent.messages import Image
from wave_agent.text import clip, one_line, strip_controls

KINDS: Mapping[str, ToolKind] = {
    "Bash": "execute",
    "BashOutput": "execute",
    "KillShell": "execute",
    "Read": "read",
    "Write": "edit",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Glob": "search",
    "Grep": "search",
    "TodoWrite": "think",
    "Task": "think",
    "Skill": "think",
    "WebFetch": "fetch",
}
RESULT_LIMIT = 100_000
"""Characters of a result that an editor gets."""
_SUBJECTS = ("command", "file_path", "notebook_path", "pattern", "path", "url", "query", "description", "skill")
_PATHS = ("file_path", "notebook_path", "path")

Content = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent
Former = Callable[[str], str | None]
"""The text of a file as it is now; None: there is none that can be shown."""


class ShownCall(Struct, frozen=True, kw_only=True):
    """What does not change about a call."""

    name: str
    parameters: Mapping[str, Any]
    cwd: str
    project: str
    whose: str = ""
    """The type of the subagent that makes it; empty: the agent itself."""

    @property
    def kind(self) -> ToolKind:
        return KINDS.get(self.name, "other")

    @property
    def prints(self) -> bool:
        """It prints while it runs."""
        return self.name == "Bash"

    @property
    def title(self) -> str:
        about = self._about()
        said = about if self.name == "Bash" and about else f"{one_line(self.name, 60)} {about}".rstrip()
        return f"{self.whose}: {said}" if self.whose else said

    def _about(self) -> str:
        named = next((self.parameters[key] for key in _SUBJECTS if self.parameters.get(key)), None)
        if named is None:
            named = json.dumps(dict(self.parameters), ensure_ascii=False, default=str) if self.parameters else ""
        return one_line(str(named).removeprefix(f"{self.project}/"), 120)

    def locations(self) -> list[ToolCallLocation]:
        path = self._path()
        if not path:
            return []
        line: Any = self.parameters.get("offset") if self.name == "Read" else None
        return [ToolCallLocation(path=path, line=line if isinstance(line, int) and line >= 0 else None)]

    def _path(self) -> str:
        """Absolute, as the protocol wants it; empty if the call names none."""
        given = next((self.parameters[key] for key in _PATHS if isinstance(self.parameters.get(key), str)), "")
        return os.path.normpath(os.path.join(self.cwd, os.path.expanduser(given))) if given else ""

    def changes(self, former: Former) -> list[FileEditToolCallContent]:
        """What an edit would change, passage by passage; a whole file for Write."""
        path = self._path()
        if not path:
            return []
        if self.name == "Write":
            return [tool_diff_content(path, _text(self.parameters, "content"), former(path))]
        if self.name == "Edit":
            return [_passage(path, self.parameters)]
        if self.name == "MultiEdit":
            return [_passage(path, step) for step in _steps(self.parameters)]
        return []


def _passage(path: str, step: Mapping[str, Any]) -> FileEditToolCallContent:
    return tool_diff_content(path, _text(step, "new_string"), _text(step, "old_string"))


def _steps(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    edits: Any = parameters.get("edits")
    for step in cast(list[Any], edits) if isinstance(edits, list) else []:
        if isinstance(step, Mapping):
            yield cast(Mapping[str, Any], step)


def _text(parameters: Mapping[str, Any], key: str) -> str:
    return str(parameters.get(key, ""))


def said(text: str) -> ContentToolCallContent:
    return tool_content(text_block(text))


def printed(text: str) -> ContentToolCallContent:
    """Output of a program, which is not Markdown."""
    shown = strip_controls(text).rstrip("\n")
    fence = "```"
    while fence in shown:
        fence += "`"
    return said(f"{fence}console\n{shown}\n{fence}")


def outcome(
    call: ShownCall, result: str, *, success: bool, images: Iterable[Image], changes: Sequence[Content]
) -> list[Content]:
    """What a finished call shows. A change that was made is shown as such, and not in words."""
    pictures = [tool_content(image_block(one.data, one.media_type)) for one in images]
    if success and changes:
        return [*changes, *pictures]
    text = clip(result, RESULT_LIMIT)
    shown = printed(text) if success and call.kind in ("execute", "read", "search") else said(strip_controls(text))
    return [shown, *pictures] if text.strip() else [*pictures]
