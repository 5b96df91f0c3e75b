"""What a host sends, read as our events and calls. Pure.

What cannot be read raises `UnreadableError`, which is a deny before a tool runs: no call is let through because its
shape is new.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from posixpath import join, normpath
from typing import Any, cast

from msgspec import Struct

from wave_agent.formats.strict_json import StrictJSONError, parse_document
from wave_agent.guard.hosts import HostRow, ToolRow
from wave_agent.guard.patches import BEGIN, PatchError, calls_of, read_patch
from wave_agent.hooks.events import EVENTS, EventRow, HookEvent

NEEDED: Mapping[str, tuple[str, ...]] = {
    "Bash": ("command",),
    "Read": ("file_path",),
    "Write": ("file_path",),
    "Edit": ("file_path",),
}
"""The fields without which it is unknown what a call of these tools does."""

_COMMANDS = ("command", "cmd")
"""Where an unknown tool may have a command line."""


class UnreadableError(Exception):
    """What a host sent cannot be read. The message says why."""


class HostCall(Struct, frozen=True, kw_only=True):
    """One call of one of our tools, or of a tool that only the host knows."""

    tool: str
    tool_input: Mapping[str, Any]
    directory: str
    """Where it runs."""
    row: ToolRow | None = None
    """How the host's fields became ours; None if the call is not the host's as it is."""


class HostEvent(Struct, frozen=True, kw_only=True):
    """An event of a host, as one of ours."""

    host: str
    event: HookEvent
    name: str
    """The host's name of the event."""
    session_id: str
    directory: str
    """The session's directory."""
    permission_mode: str = "default"
    """The host's own."""
    transcript: str = ""
    """The host's transcript, if hooks can read it."""
    is_prompt: bool = True
    """False: the host announces a prompt, but only goes on with a turn."""
    facts: Mapping[str, Any] = {}
    """The event's own stdin fields, without those about the call."""
    tool: str = ""
    """The host's name of the tool."""
    tool_input: Mapping[str, Any] = {}
    """As the host sent it."""
    tool_use_id: str = ""
    tool_output: Any = None
    """The tool's result as the host sent it."""
    calls: tuple[HostCall, ...] = ()

    def call_id(self, number: int) -> str:
        """A call of the host that is several of ours has an id for each."""
        return self.tool_use_id if len(self.calls) == 1 else f"{self.tool_use_id}.{number + 1}"


def read_event(host: HostRow, name: str, stdin: str, here: str) -> HostEvent:
    """`name` is the host's name of the event. `here` is where the host started us. Raises `UnreadableError`."""
    event = host.event_named(name)
    if event is None:
        raise UnreadableError(f"{host.title} has no event {name!r} (expected one of {', '.join(host.events)})")
    payload = _object(stdin)
    given = payload.get("hook_event_name")
    if isinstance(given, str) and host.events.get(given, event) is not event:
        raise UnreadableError(f"this is a {given} event, but the guard was installed for {name}")
    directory = normpath(join(here, _directory(host, payload)))
    mode = payload.get("permission_mode")
    facts = _facts(host, event, payload)
    common = HostEvent(
        host=host.name,
        event=event,
        name=name,
        session_id=_text(_found(host, payload, "session_id")),
        directory=directory,
        permission_mode=mode if isinstance(mode, str) else "default",
        transcript=_text(payload.get("transcript_path")) if host.has_known_transcript else "",
        is_prompt=facts.get("prompt") != "" or not host.prompt_mark or host.prompt_mark in payload,
        facts=facts,
    )
    if not EVENTS[event].has_tool:
        return common
    tool = host.event_tools.get(name) or _found(host, payload, "tool_name")
    if not isinstance(tool, str) or not tool:
        raise UnreadableError("it names no tool")
    if name in host.event_tools:
        envelope = {"hook_event_name", *(key for keys in host.keys.values() for key in keys)}
        tool_input = {key: value for key, value in payload.items() if key not in envelope}
    else:
        tool_input = _input(_found(host, payload, "tool_input"))
    return HostEvent(
        **{field: getattr(common, field) for field in _COMMON},
        tool=tool,
        tool_input=tool_input,
        tool_use_id=_text(_found(host, payload, "tool_use_id")),
        tool_output=_found(host, payload, "tool_response"),
        calls=tuple(_with_input(EVENTS[event], _calls(host.tool_named(tool), tool, tool_input, directory))),
    )


_COMMON = ("host", "event", "name", "session_id", "directory", "permission_mode", "transcript", "is_prompt", "facts")


def _object(stdin: str) -> dict[str, Any]:
    try:
        value = parse_document(stdin).value
    except (StrictJSONError, RecursionError) as error:
        raise UnreadableError(f"the event is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UnreadableError("the event is not a JSON object")
    return cast(dict[str, Any], value)


def _found(host: HostRow, payload: Mapping[str, Any], field: str) -> Any:
    """The first of the places where this host puts the field."""
    for key in (*host.keys.get(field, ()), field):
        if payload.get(key) is not None:
            return payload[key]
    return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _directory(host: HostRow, payload: Mapping[str, Any]) -> str:
    found = _found(host, payload, "cwd")
    if isinstance(found, list):  # the roots of a workspace
        found = next(iter(cast(list[Any], found)), None)
    if found is not None and (not isinstance(found, str) or "\0" in found):
        raise UnreadableError("its cwd is not a path")
    return found or ""


def _input(value: Any) -> Mapping[str, Any]:
    """An object, or a JSON object in a string."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _object(value)
    if isinstance(value, str):
        return {"input": value}
    if value is not None and not isinstance(value, dict):
        raise UnreadableError("the tool's input is not an object")
    return cast(dict[str, Any], value or {})


# ------------------------------------------------------------------------------------------------------------- calls


def _calls(row: ToolRow | None, tool: str, given: Mapping[str, Any], directory: str) -> Iterator[HostCall]:
    if row is None:
        yield HostCall(tool=tool, tool_input=given, directory=directory, row=ToolRow(name=tool))
        for field in _COMMANDS:  # a shell under a name that is new: rules about commands hold there, too
            if isinstance(given.get(field), str):
                yield HostCall(tool="Bash", tool_input={"command": given[field]}, directory=directory)
        return
    if row.is_patch and not isinstance(given.get("file_path"), str):
        yield from _patched(_patch(given), directory)
        return
    call, *others = _translated(row, tool, given, directory)
    yield call
    yield from others
    command = call.tool_input.get("command")
    if isinstance(command, str) and BEGIN in command:
        # Some hosts apply a patch in a command line themselves.
        try:
            yield from _patched(command, call.directory)
        except UnreadableError:
            return  # then it is a command like any other


_SHELL = re.compile(r"\b(?:ba|da|a|z|k|mk|fi|c|tc)?sh\b")


def _with_input(event: EventRow, calls: Iterator[HostCall]) -> Iterator[HostCall]:
    """The calls, and a shell that could be typed into once more, as one that reads unknown input."""
    for call in calls:
        yield call
        command = call.tool_input.get("command")
        if event.has_rewrites and call.row and call.row.keeps_input and _SHELL.search(str(command)):
            typed = {"command": f"cat | {{ {command}\n}}"}
            yield HostCall(tool=call.tool, tool_input=typed, directory=call.directory)


def _translated(row: ToolRow, tool: str, given: Mapping[str, Any], directory: str) -> list[HostCall]:
    """At least one: several edits are several calls, so that a guard of one sees nothing of the others."""
    found = dict[str, Any]()
    for name, value in given.items():
        field = row.fields.get(name, name)
        if found.setdefault(field, value) != value:  # the host reads one of the two, and a guard may read the other
            raise UnreadableError(f"{tool} has two different values for {field}")
    for field, factor in row.factors.items():
        if isinstance(found.get(field), int | float):
            found[field] = found[field] * factor
    edits = _edits(row, found.pop(row.edits, None)) if row.edits else [dict[str, Any]()]
    found |= edits[0]
    if isinstance(found.get("command"), list):
        found["command"] = _joined(cast(list[Any], found["command"]))
    for field in NEEDED.get(row.name, ()):
        if not isinstance(found.get(field), str):
            raise UnreadableError(f"{tool} has no {field} that is a string")
    there = found.get(row.directory) if row.directory else None
    if there is not None and (not isinstance(there, str) or "\0" in there):
        raise UnreadableError(f"the {row.directory} of {tool} is not a path")
    where = normpath(join(directory, there or ""))
    only = row if len(edits) == 1 else None
    return [HostCall(tool=row.name, tool_input=found | edit, directory=where, row=only) for edit in edits]


def _edits(row: ToolRow, value: Any) -> list[dict[str, Any]]:
    """The fields of each; at least one, even if the list is empty: no call goes unjudged."""
    edits: list[Any] = cast(list[Any], value) if isinstance(value, list) else [value]
    return [_edit(row, edit) for edit in edits] or [dict.fromkeys(_EDIT, "")]


def _edit(row: ToolRow, value: Any) -> dict[str, Any]:
    edit = cast(dict[str, Any], value) if isinstance(value, dict) else dict[str, Any]()
    texts = [edit.get(key) for key in row.edit_keys]
    if not all(isinstance(text, str) for text in texts):
        raise UnreadableError(f"{row.edits} is not a list of edits with {' and '.join(row.edit_keys)}")
    rest = {key: one for key, one in edit.items() if key not in row.edit_keys}
    return {**rest, **dict(zip(_EDIT, texts, strict=True))}


_EDIT = ("old_string", "new_string")


def _joined(words: Sequence[Any]) -> str:
    if not all(isinstance(word, str) for word in words):
        raise UnreadableError("command is a list, but not of strings")
    return shlex.join(words)


def _patch(given: Mapping[str, Any]) -> str:
    texts = [value for value in given.values() if isinstance(value, str)]
    return next((text for text in texts if BEGIN in text), "")


def _patched(text: str, directory: str) -> Iterator[HostCall]:
    try:
        changes = read_patch(text)
    except PatchError as error:
        raise UnreadableError(f"the patch cannot be read: {error}") from None
    for change in changes:
        for tool, tool_input in calls_of(change):
            yield HostCall(tool=tool, tool_input=tool_input, directory=directory)


def host_input(call: HostCall, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """The host's input with what hooks changed in ours; None if the change cannot be expressed in it.

    `given` is the host's input, `wanted` ours as rewritten."""
    row, back = call.row, dict(given)
    if row is None:
        return None
    names = {ours: theirs for theirs, ours in row.fields.items()}
    for field in call.tool_input.keys() | wanted.keys():
        before, after = call.tool_input.get(field), wanted.get(field)
        if field in call.tool_input and field in wanted and before == after:
            continue
        theirs = names.get(field, field)
        made_up = bool(row.edits) and field in _EDIT
        if made_up or (theirs in given and isinstance(given[theirs], list) and not isinstance(after, list)):
            return None
        if field not in wanted:
            back.pop(theirs, None)
        elif field in row.factors and isinstance(after, int | float):
            back[theirs] = after / row.factors[field]
        else:
            back[theirs] = after
    return back


# ------------------------------------------------------------------------------------------------------------- facts


def _facts(host: HostRow, event: HookEvent, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The stdin fields of our event, from where this host puts them."""
    row, about_call = EVENTS[event], ("tool_name", "tool_input", "tool_use_id")
    skipped = {*row.aliases, *about_call, *(field.name for field in row.stdin if field.computed or field.optional)}
    found: dict[str, Any] = {}
    for field in row.stdin:
        if field.name not in skipped:
            given = _found(host, payload, field.name)
            found[field.name] = _response(given) if field.name == "tool_response" else _typed(given, field.type)
    return found


_EMPTY: Mapping[str, Any] = {"string": "", "boolean": False, "integer": 0, "array": [], "object": {}}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str, "boolean": bool, "integer": int, "array": list, "object": dict,
}  # fmt: skip


def _typed(value: Any, kind: str) -> Any:
    """A value of another type becomes text where text is expected, and is dropped elsewhere."""
    if isinstance(value, _TYPES[kind]):
        return value
    if kind == "string" and value is not None:
        return json.dumps(value, ensure_ascii=False)
    return _EMPTY[kind]


def _response(value: Any) -> dict[str, Any]:
    """At least `success` and `content`."""
    if not isinstance(value, dict):
        return {"success": True, "content": _typed(value, "string")}
    found = cast(dict[str, Any], value)
    texts = (found.get(key) for key in ("content", "llmContent", "stdout", "output", "textResultForLlm"))
    text = next((one for one in texts if isinstance(one, str)), None)
    failed = bool(found.get("error") or found.get("is_error") or found.get("resultType") == "failure")
    return {
        **found,
        "success": found["success"] if isinstance(found.get("success"), bool) else not failed,
        "content": json.dumps(found, ensure_ascii=False) if text is None else text,
    }
