"""Sample events to try hooks on: all stdin fields, filled in from the few that were given."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from msgspec import Struct

from wave_agent.formats.strict_json import type_name
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.events import COMMON_STDIN, EVENTS, OF_SUBAGENTS, EventRow, HookEvent, StdinField
from wave_agent.hooks.matcher import KNOWN_TOOLS, MatcherForm
from wave_agent.permissions.decision import PermissionMode
from wave_agent.text import did_you_mean

GIVEN: Mapping[str, str] = {
    "tool": "tool_name",
    "input": "tool_input",
    "response": "tool_response",
    "prompt": "prompt",
}
"""Short names for the most common stdin fields."""
_SAMPLES: Mapping[str, Any] = {
    "tool_use_id": "call_1",
    "tool_response": {"success": True, "content": ""},
    "source": "startup",
    "trigger": "manual",
    "denied_by": "rule",
    "load_reason": "session_start",
    "memory_type": "Project",
    "event": "change",
}
"""Defaults for fields that were not given, if their type's empty value would be unrealistic."""
_EMPTY: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


class SubjectError(ValueError):
    """Not a valid event. The message says what is wrong and suggests the closest name."""


class Subject(Struct, frozen=True):
    """One event as the agent would send it to hooks."""

    event: HookEvent
    facts: Mapping[str, Any]
    """The event's specific stdin fields."""
    mode: PermissionMode | None = None
    """The permission mode, if the payload sets one."""

    @property
    def row(self) -> EventRow:
        return EVENTS[self.event]

    @property
    def tool(self) -> str | None:
        return self.facts.get("tool_name") if self.row.has_tool else None


def subject(event: HookEvent, given: Mapping[str, Any], payload: Mapping[str, Any] | None = None) -> Subject:
    """`given` has the keys of `GIVEN`, `payload` those of stdin. Raises `SubjectError`."""
    row = EVENTS[event]
    fields = {field.name: field for field in row.stdin}
    facts = dict(payload or {})
    named = facts.get("hook_event_name", event.value)
    if named != event.value:
        raise SubjectError(f'the payload is for the event "{named}", not {event}')
    mode = _mode(facts.get("permission_mode"))
    # Set by the session, or computed from the input, not by a payload: one that was recorded has them all the same.
    for field in (*COMMON_STDIN, *(field for field in row.stdin if field.computed)):
        if field.name not in OF_SUBAGENTS:
            facts.pop(field.name, None)
    for short, value in given.items():
        if GIVEN[short] not in fields:
            raise SubjectError(f"{event} has no {short}; available: {', '.join(fields)}")
        facts[GIVEN[short]] = value
    for name, value in facts.items():
        if name in fields:
            _check(fields[name], value)
    if row.has_tool and not facts.get("tool_name"):
        raise SubjectError(f"{event} needs a tool")
    missing = {name: _sample(field) for name, field in fields.items() if name not in facts and not _may_lack(field)}
    aliases = {alias: facts.get(field, missing.get(field)) for alias, field in row.aliases.items()}
    return Subject(event, {**missing, **aliases, **facts}, mode)


def event_for(given: Collection[str]) -> HookEvent:
    """The first event that has all these fields, by their short names."""
    wanted = {GIVEN[short] for short in given}
    return next(event for event, row in EVENTS.items() if wanted <= {field.name for field in row.stdin})


def event_named(name: str) -> HookEvent:
    """Raises `SubjectError`."""
    known = [event.value for event in EVENTS]
    if name not in known:
        raise SubjectError(f'there is no event "{name}"{did_you_mean(name, known)}; available: {", ".join(known)}')
    return HookEvent(name)


def check_tool(name: str, tools: Iterable[str], hooks: Iterable[HookDefinition]) -> None:
    """Raises `SubjectError` unless the name is a built-in tool, a tool named in settings or an MCP server's tool."""
    written = {one.text for hook in hooks for one in hook.matcher.alternatives if one.form is MatcherForm.NAME}
    known = list(dict.fromkeys((*tools, *KNOWN_TOOLS, *sorted(written))))
    if name not in known and not name.startswith("mcp__"):
        raise SubjectError(f'there is no tool "{name}"{did_you_mean(name, known)}; available: {", ".join(known)}')


def hooks_named(name: str, event: HookEvent, hooks: Iterable[HookDefinition]) -> tuple[HookDefinition, ...]:
    """This event's hooks with this name. Raises `SubjectError` if there are none."""
    everywhere = list(hooks)
    here = tuple(hook for hook in everywhere if hook.event is event and hook.name == name)
    if not here:
        elsewhere = sorted({hook.event.value for hook in everywhere if hook.name == name})
        if elsewhere:
            raise SubjectError(f'the hook "{name}" runs on {", ".join(elsewhere)}, not on {event}')
        known = list(dict.fromkeys(hook.name for hook in everywhere if hook.event is event))
        listed = f"available: {', '.join(known)}" if known else "it has no hooks"
        raise SubjectError(f'{event} has no hook "{name}"{did_you_mean(name, known)}; {listed}')
    return here


def _mode(name: Any) -> PermissionMode | None:
    known = [mode.value for mode in PermissionMode]
    if name is not None and name not in known:
        raise SubjectError(f"permission_mode must be one of {', '.join(known)}")
    return None if name is None else PermissionMode(name)


def _check(field: StdinField, value: Any) -> None:
    wanted = _TYPES[field.type]
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise SubjectError(f"{field.name} must be {type_name(_EMPTY[field.type])}, not {type_name(value)}")


def _may_lack(field: StdinField) -> bool:
    return field.optional or field.computed


def _sample(field: StdinField) -> Any:
    found = _SAMPLES.get(field.name, _EMPTY[field.type])
    return dict(cast(Mapping[str, Any], found)) if isinstance(found, Mapping) else found
