"""The dialects of hooks: what a hook means if it was written for another agent.

Every hook definition carries its dialect. Each difference between dialects is a column here, or a small table that a
column names. Do not write `if dialect == …` elsewhere: add a column. No difference may make either dialect more
permissive.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct

from wave_agent.hooks.events import EventRow, HookEvent, StdinField
from wave_agent.lazy_regex import lazy_regex


class Dialect(StrEnum):
    """The agent a hook was written for."""

    WAVE = "wave"
    CLAUDE = "claude"


ALL = frozenset(Dialect)


class Aside(Struct, frozen=True, kw_only=True):
    """What some dialects pass to their hooks in addition to the event's own fields."""

    directory: str = ""
    """The session's current directory."""
    prompt_id: str = ""
    """The current prompt; empty before the first."""
    duration_ms: float | None = None
    """How long the tool took."""
    original: str | None = None
    """The content of the file before the call."""
    session_id: str = ""
    attended: bool = True
    """There is a user to ask."""
    task: Callable[[], str] = str
    """The latest prompt, or the task of a subagent: for hooks that ask a model."""


class Extra(Struct, frozen=True):
    """A stdin field that other dialects do not have."""

    field: StdinField
    on: Callable[[EventRow], bool]
    value: Callable[[Aside], Any]
    """None: the field is omitted."""


Shape = Callable[[Mapping[str, Any], Mapping[str, Any], Aside], Any]
"""(the tool's input, its response in our shape, the aside) → `tool_response` in the dialect's shape."""


class DialectRow(Struct, frozen=True, kw_only=True):
    """Everything specific to one dialect."""

    dialect: Dialect
    agent: str
    """Whose hooks these are."""
    exit_two_rules: bool = False
    """Exit 2 blocks, whatever its JSON allows or asks."""
    whole_input: bool = False
    """`updatedInput` is the whole input: fields it omits are removed."""
    failed_tool: HookEvent = HookEvent.POST_TOOL_USE
    """The event after a tool that ran and failed, such as a command with a non-zero exit code."""
    needs_somebody: frozenset[HookEvent] = frozenset()
    """Events that do not fire if there is no user to ask."""
    has_once: bool = True
    """`once` in settings is honoured."""
    has_arguments: bool = True
    """A command that is a bare path gets the event's main values as arguments."""
    names_its_services: bool = False
    """Trusting an HTTP hook covers its host and the variables it lists, and its response need not be JSON."""
    continues_on_block: bool = True
    """`continueOnBlock` of a `prompt` hook, unless it is set."""
    model_words: frozenset[str] = frozenset()
    """Values of `model` that only that agent understands: they mean the usual model."""
    takes_other_types: bool = False
    """An entry of an unsupported type is a hook that fails every time; otherwise the entry is invalid."""
    follows_session: bool = False
    """`cwd` and the hook's own directory are the session's current one, not the one it was started in."""
    stdin: tuple[Extra, ...] = ()
    environment: Mapping[str, Callable[[Aside], str]] = MappingProxyType({})
    shapes: Mapping[str, Shape] = MappingProxyType({})
    """The shape of `tool_response`, by tool name or by prefix and `*`."""

    def shape(self, tool: str) -> Shape | None:
        return self.shapes.get(tool) or next(
            (shape for name, shape in self.shapes.items() if name.endswith("*") and tool.startswith(name[:-1])), None
        )


def heard_by(event: HookEvent, *, failed: bool = False, attended: bool = True) -> frozenset[Dialect]:
    """The dialects in which this event fires. `failed`: the event follows a tool that ran and failed."""
    return frozenset(
        row.dialect
        for row in DIALECTS.values()
        if not (failed and row.failed_tool is not event) and (attended or event not in row.needs_somebody)
    )


def has_failed(payload: Mapping[str, Any]) -> bool:
    """Whether these stdin fields describe a tool that ran and failed."""
    response: Any = payload.get("tool_response")
    return isinstance(response, Mapping) and cast(Mapping[str, Any], response).get("success") is False


def stdin_fields(dialect: Dialect, event: EventRow, payload: Mapping[str, Any], aside: Aside) -> dict[str, Any]:
    """The stdin fields of an event in this dialect. Pure."""
    row, changed = DIALECTS[dialect], dict(payload)
    if row.follows_session and aside.directory:
        changed["cwd"] = aside.directory
    shape = row.shape(str(payload.get("tool_name", "")))
    response: Any = payload.get("tool_response")
    if shape is not None and isinstance(response, Mapping):
        tool_input: Any = payload.get("tool_input")
        changed["tool_response"] = shape(
            cast(Mapping[str, Any], tool_input) if isinstance(tool_input, Mapping) else {},
            cast(Mapping[str, Any], response),
            aside,
        )
    repeated = {alias: changed[field] for alias, field in event.aliases.items() if field in changed}
    found = {extra.field.name: extra.value(aside) for extra in row.stdin if extra.on(event)}
    return {**changed, **repeated, **{name: value for name, value in found.items() if value is not None}}


# ---------------------------------------------------------------------------------------- the shapes of `tool_response`


def _bash(_: Mapping[str, Any], response: Mapping[str, Any], __: Aside) -> dict[str, Any]:
    """Both streams as one, in the order they were printed."""
    own = ("exit_code", "success", "backgroundTaskId")
    return {
        "stdout": response.get("output", response.get("stdout", response.get("content", ""))),
        "stderr": "",
        "interrupted": bool(response.get("interrupted")),
        "isImage": False,
        "noOutputExpected": False,
        **{name: response[name] for name in own if name in response},
    }


_HUNK = lazy_regex(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def patch_of(diff: str) -> list[dict[str, Any]]:
    """The hunks of a unified diff, as objects."""
    hunks: list[dict[str, Any]] = []
    for line in diff.split("\n"):
        if begins := _HUNK.match(line):
            old, old_lines, new, new_lines = (int(number or 1) for number in begins.groups())
            hunks.append({"oldStart": old, "oldLines": old_lines, "newStart": new, "newLines": new_lines, "lines": []})
        elif hunks and line[:1] in ("+", "-", " ", "\\"):
            hunks[-1]["lines"].append(line)
    return hunks


def _changed(tool_input: Mapping[str, Any], response: Mapping[str, Any], aside: Aside) -> dict[str, Any]:
    """What the tools that edit files have in common."""
    success = {"success": response["success"]} if "success" in response else {}
    return {
        "filePath": response.get("filePath", tool_input.get("file_path", "")),
        "structuredPatch": patch_of(str(response.get("diff", ""))),
        "originalFile": aside.original,
        "userModified": False,
        **success,
    }


def _written(tool_input: Mapping[str, Any], response: Mapping[str, Any], aside: Aside) -> dict[str, Any]:
    """Contains the file's text; ours has what the model sees. A response replaced by a hook stays replaced."""
    if "filePath" not in response:
        return dict(response)
    common = _changed(tool_input, response, aside)
    kind = response.get("type", "create" if aside.original is None else "update")
    return {"type": kind, "content": tool_input.get("content", ""), **common}


def _edited(tool_input: Mapping[str, Any], response: Mapping[str, Any], aside: Aside) -> dict[str, Any]:
    if "filePath" not in response:
        return dict(response)
    return {
        "oldString": tool_input.get("old_string", ""),
        "newString": tool_input.get("new_string", ""),
        "replaceAll": bool(tool_input.get("replace_all")),
        **_changed(tool_input, response, aside),
    }


def _edited_often(tool_input: Mapping[str, Any], response: Mapping[str, Any], aside: Aside) -> dict[str, Any]:
    if "filePath" not in response:
        return dict(response)
    common = _changed(tool_input, response, aside)
    return {"edits": tool_input.get("edits", []), "originalFileContents": aside.original, **common}


_OF_NOTEBOOKS = ("notebook_path", "cell_id", "cell_type", "language", "edit_mode", "new_source")


def _edited_notebook(tool_input: Mapping[str, Any], response: Mapping[str, Any], aside: Aside) -> dict[str, Any]:
    if "notebook_path" not in response:
        return dict(response)
    kept = {name: response[name] for name in _OF_NOTEBOOKS if name in response}
    return {**kept, "original_file": aside.original, **_changed(tool_input, response, aside)}


def _fetched(_: Mapping[str, Any], response: Mapping[str, Any], __: Aside) -> dict[str, Any]:
    if "code" not in response:
        return dict(response)
    kept = {name: response[name] for name in ("bytes", "code", "codeText", "durationMs", "url") if name in response}
    return {**kept, "result": response.get("content", "")}


def _read(_: Mapping[str, Any], response: Mapping[str, Any], __: Aside) -> dict[str, Any]:
    if "file" not in response:
        return dict(response)
    return {"type": response.get("type", "text"), "file": response["file"]}


def _content_array(_: Mapping[str, Any], response: Mapping[str, Any], __: Aside) -> Any:
    """The blocks as the server sent them; of a response that a hook replaced, its text."""
    content: Any = response.get("blocks", response.get("content", ""))
    return cast(list[Any], content) if isinstance(content, list) else [{"type": "text", "text": content}]


def _reported(_: Mapping[str, Any], response: Mapping[str, Any], __: Aside) -> dict[str, Any]:
    """The report of a subagent as an array of blocks."""
    return {**response, "content": _content_array({}, response, Aside())}


# ----------------------------------------------------------------------------------------------------------- the table


def _ends_a_turn(event: EventRow) -> bool:
    return event.block_counter is not None


DIALECTS: Mapping[Dialect, DialectRow] = MappingProxyType({
    row.dialect: row
    for row in (
        DialectRow(dialect=Dialect.WAVE, agent="this agent", shapes={"mcp__*": _content_array}),
        DialectRow(
            dialect=Dialect.CLAUDE,
            agent="Claude Code",
            exit_two_rules=True,
            whole_input=True,
            failed_tool=HookEvent.POST_TOOL_USE_FAILURE,
            needs_somebody=frozenset({HookEvent.PERMISSION_REQUEST}),
            has_once=False,
            has_arguments=False,
            names_its_services=True,
            continues_on_block=False,
            model_words=frozenset({"haiku", "sonnet", "opus", "inherit", "default"}),
            takes_other_types=True,
            follows_session=True,
            stdin=(
                Extra(
                    StdinField("prompt_id", "string", "the current prompt", optional=True),
                    lambda _: True,
                    lambda aside: aside.prompt_id or None,
                ),
                Extra(
                    StdinField("effort", "object", "always `{\"level\": \"medium\"}`, whatever `--effort` says"),
                    lambda event: event.has_tool or _ends_a_turn(event),
                    lambda _: {"level": "medium"},
                ),
                Extra(
                    StdinField("duration_ms", "number", "how long the tool took", optional=True),
                    lambda event: event.after_tool,
                    lambda aside: aside.duration_ms,
                ),
                Extra(StdinField("background_tasks", "array", "always empty"), _ends_a_turn, lambda _: []),
                Extra(StdinField("session_crons", "array", "always empty"), _ends_a_turn, lambda _: []),
            ),
            environment={
                "CLAUDECODE": lambda _: "1",
                "CLAUDE_CODE_SESSION_ID": lambda aside: aside.session_id,
                "CLAUDE_CODE_ENTRYPOINT": lambda aside: "cli" if aside.attended else "sdk-cli",
            },
            shapes={
                "Bash": _bash,
                "Write": _written,
                "Edit": _edited,
                "MultiEdit": _edited_often,
                "NotebookEdit": _edited_notebook,
                "Read": _read,
                "WebFetch": _fetched,
                "Task": _reported,
                "mcp__*": _content_array,
            },
        ),
    )
})  # fmt: skip
