"""JSON Schemas for settings, hook input and hook output, generated from the tables the program itself uses.

A schema accepts everything the program accepts without a warning; it may accept more.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from wave_agent.effects.shown import MEANINGS, to_json
from wave_agent.effects.values import NO_EFFECTS
from wave_agent.hooks.definitions import Mode, Phase
from wave_agent.hooks.dialects import DIALECTS, Dialect
from wave_agent.hooks.events import COMMON_STDIN, EFFECTS, EVENTS, EventRow, HookEvent, OnFailure, StdinField
from wave_agent.hooks.execution import BodyFormat
from wave_agent.hooks.kinds import MAIN_KEYS, SHELLS, THINKING, TYPES
from wave_agent.hooks.reader import FIELDS, SPECIFIC, Field, Home, fields_of
from wave_agent.permissions.decision import PermissionMode, Rules
from wave_agent.settings.mcp_keys import MCP_SETTINGS
from wave_agent.settings.values import KEYS, MODEL_SCHEMA, SCHEMAS, VALUES

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_COMMENTS: Schema = {"^//": {"description": "a comment"}}
_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_COMMAND: Schema = {"type": "string", "pattern": r"\S"}


def settings_schema() -> Schema:
    """The schema of `.wave/settings.json`."""
    properties: dict[str, Schema] = {"$schema": {"description": "this schema, for editors"}}
    for value in VALUES:
        if not value.section:
            properties[value.key] = _described(_or_null(SCHEMAS[value.reader]), value.meaning)
    for name, key in MCP_SETTINGS.items():
        properties[name] = _described(_or_null(key.schema), key.meaning)
    properties["hooks"] = _or_null(_hooks_schema())
    for section in KEYS:
        if section not in properties:
            properties[section] = _or_null(_section(section))
    return {
        "$schema": DIALECT,
        "title": "Wave Agent settings",
        **_closed(properties),
        "$defs": {"hook": _hook(), "toolHook": _hook(**{"if": _condition()})},
    }


def input_schema(event: HookEvent) -> Schema:
    """The schema of what a hook on this event reads from stdin."""
    fields = (*COMMON_STDIN, *EVENTS[event].stdin)
    known: dict[str, Schema] = {
        "hook_event_name": {"const": event.value},
        "permission_mode": {"enum": [mode.value for mode in PermissionMode]},
        EFFECTS.name: _effects(),
    }
    return {
        "$schema": DIALECT,
        "title": f"{event}: what a hook reads from stdin",
        "description": EVENTS[event].when,
        "type": "object",
        "properties": {field.name: _described(known.get(field.name, _typed(field)), field.meaning) for field in fields},
        "required": [field.name for field in fields if not field.optional],
    }


def output_schema(event: HookEvent) -> Schema:
    """The schema of the JSON object a hook on this event may print."""
    row = EVENTS[event]
    specific = _object(_outputs(row, (Home.SPECIFIC, Home.EITHER), only=row.specific))
    properties = _outputs(row, (Home.TOP, Home.EITHER))
    if "additionalContext" not in row.specific:
        properties.pop("additionalContext")
    properties[SPECIFIC] = _described(_or_null(specific), FIELDS[SPECIFIC].meaning)
    return {"$schema": DIALECT, "title": f"{event}: what a hook prints to stdout", **_object(properties)}


def all_schemas() -> Mapping[str, Schema]:
    """All schemas by file name."""
    return {
        "settings.json": settings_schema(),
        **{f"input/{event}.json": input_schema(event) for event in EVENTS},
        **{f"output/{event}.json": output_schema(event) for event in EVENTS},
    }


# ------------------------------------------------------------------------------------------------------------- settings


def _section(name: str) -> Schema:
    if name in _FREE:
        return _FREE[name]
    values = {value.key: _described(_or_null(SCHEMAS[value.reader]), value.meaning)
              for value in VALUES if value.section == name}  # fmt: skip
    rules = {kind: _or_null({"type": "array", "items": _TEXT}) for kind in Rules.__struct_fields__}
    return _closed({**values, **(rules if name == "permissions" else {})})


def _hooks_schema() -> Schema:
    return {
        "type": "object",
        "properties": {
            row.event.value: {"description": row.when, "type": "array", "items": _group(row)} for row in EVENTS.values()
        },
        "patternProperties": _COMMENTS,
        "additionalProperties": False,
    }


def _group(row: EventRow) -> Schema:
    """A bare command, a hook with its matcher, or a matcher with its hooks."""
    one: Schema = {"$ref": "#/$defs/toolHook" if row.has_tool else "#/$defs/hook"}
    around: dict[str, Schema] = {
        "matcher": _described(_or_null(_TEXT), f"compared with {row.target}" if row.target else "nothing to compare"),
        "sequential": _described(
            _or_null(_FLAG), "run one after another, each on the input as changed by the previous ones"
        ),
        "phase": {"enum": [*([phase.value for phase in Phase] if row.has_rewrites else []), None]},
    }
    several: Schema = {
        "type": "object",
        "properties": {**around, "hooks": {"type": "array", "items": {"anyOf": [_COMMAND, one]}},
                       **dict.fromkeys((*MAIN_KEYS, "onFailure"), False)},
        "required": ["hooks"],
    }  # fmt: skip
    alone: Schema = {**one, "properties": {**around, "hooks": {"type": "null"}}}
    return {"anyOf": [_COMMAND, several, alone]}


def _hook(**more: Schema) -> Schema:
    properties: dict[str, Schema] = {
        "type": _described({"anyOf": [_or_null({"enum": list(TYPES)}), _TEXT]}, "the type of hook; default: command"),
        "command": _described(_or_null(_COMMAND), "a shell command line or, with args, a program"),
        "target": _described(_or_null({"type": "string", "pattern": r"\S.*:\S"}), "type python: FILE:FUNCTION"),
        "url": _described(_or_null({"type": "string", "pattern": "^https?://"}), "type http: the service to call"),
        "headers": _described(_or_null({"type": "object", "additionalProperties": _TEXT}), "type http: extra headers"),
        "allowedEnvVars": _described(
            _or_null({"type": "array", "items": _TEXT}), "type http, for other agents: variables that headers may use"
        ),
        "server": _described(_or_null(_TEXT), "type mcp_tool: the name of an MCP server"),
        "tool": _described(_or_null({"type": "string", "pattern": r"\S"}), "type mcp_tool: the server's tool to call"),
        "input": _described(
            _or_null({"type": "object"}), "type mcp_tool: its arguments; ${tool_input.x} is a value of the event"
        ),
        "prompt": _described(
            _or_null({"type": "string", "pattern": r"\S"}),
            "type prompt and agent: the policy that a model judges the event by; $ARGUMENTS stands for the event",
        ),
        "model": _described(_or_null(_TEXT), "type prompt and agent: the model to ask; default: hookModel"),
        "continueOnBlock": _described(
            _or_null(_FLAG), "type prompt and agent: false also ends the turn, if the model objects to a call"
        ),
        "shell": _described(_or_null({"enum": list(SHELLS)}), "the shell the command is written for"),
        "format": _described(_or_null(_words(BodyFormat)), "type http: the format of request and response"),
        "args": _described(_or_null({"type": "array", "items": _TEXT}), "the program's arguments; no shell is used"),
        "timeout": _described(_or_null({"type": "number", "exclusiveMinimum": 0}), "seconds"),
        "async": _described(_or_null(_FLAG), "run in the background without waiting"),
        "asyncRewake": _described(_or_null(_FLAG), "async, but the model gets the reason if it blocks"),
        "onFailure": _described(_or_null(_words(OnFailure)), "what happens if the hook itself fails"),
        "mode": _described(_or_null(_words(Mode)), "shadow: run and journalled, but has no effect"),
        "rollout": _described(
            _or_null({"type": "number", "minimum": 0, "maximum": 1}),
            "the share of sessions in which it is enforced; in the others, its mode is shadow",
        ),
        "enabled": _or_null(_FLAG),
        "name": _or_null(_TEXT),
        "dialect": _described(_or_null(_words(Dialect)), "the agent it was written for; default: wave"),
        "once": _described(_or_null(_FLAG), "run only once per session"),
        "statusMessage": _described(_or_null(_TEXT), "shown while it runs"),
        "if": _or_null({"type": "string", "pattern": r"^\s*$"}),
        **more,
    }
    others = [row.dialect.value for row in DIALECTS.values() if row.takes_other_types]
    given = {main: {"type": "string"} for main in ("command", "target", "url", "server", "tool", "prompt")}
    kinds = [
        {"properties": {"type": {"enum": ["command", None]}, "command": given["command"]}, "required": ["command"]},
        {"properties": {"type": {"const": "python"}, "target": given["target"]}, "required": ["type", "target"]},
        {"properties": {"type": {"const": "http"}, "url": given["url"]}, "required": ["type", "url"]},
        {
            "properties": {"type": {"const": "mcp_tool"}, "server": given["server"], "tool": given["tool"]},
            "required": ["type", "server", "tool"],
        },
        {
            "properties": {"type": {"enum": [kind.value for kind in sorted(THINKING)]}, "prompt": given["prompt"]},
            "required": ["type", "prompt"],
        },
        {
            "properties": {"dialect": {"enum": others}, "type": {"type": "string", "not": {"enum": list(TYPES)}}},
            "required": ["dialect", "type"],
        },
    ]
    return {"type": "object", "properties": properties, "anyOf": kinds}


def _condition() -> Schema:
    return _described(_or_null(_TEXT), "a permission rule such as Bash(git push:*): run only if it matches")


def _words(words: Iterable[str]) -> Schema:
    return {"enum": [str(word) for word in words]}


def _closed(properties: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "patternProperties": _COMMENTS,
        "additionalProperties": False,
    }


# ---------------------------------------------------------------------------------------------------------- hook output


_JSON_TYPES: Mapping[type, str] = {bool: "boolean", str: "string", dict: "object", list: "array"}


def _outputs(row: EventRow, homes: tuple[Home, ...], *, only: Iterable[str] | None = None) -> dict[str, Schema]:
    taken = None if only is None else set(only)
    return {
        field.name: _described(_or_null(_output(row, field)), field.meaning)
        for field in fields_of(row).values()
        if field.home in homes and (taken is None or field.name in taken)
    }


def _output(row: EventRow, field: Field) -> Schema:
    special: dict[str, Schema] = {
        "decision": {"enum": list(row.decision_words)},
        "permissionDecision": {"enum": list(row.permission_words)},
        "action": {"enum": list(row.action_words)},
        "hookEventName": {"const": row.event.value},
    }
    types = [_JSON_TYPES[kind] for kind in (field.type, *field.also)]
    return special.get(field.name, {"type": types if field.also else types[0]})


# ----------------------------------------------------------------------------------------------------------- hook input


def _effects() -> Schema:
    texts: Schema = {"type": "array", "items": _TEXT}
    shapes = {name: texts if isinstance(value, list) else _FLAG for name, value in to_json(NO_EFFECTS).items()}
    shapes["runs"] = {"type": "array", "items": texts}
    return {
        **_object({name: _described(shape, MEANINGS[name]) for name, shape in shapes.items()}),
        "required": list(shapes),
    }


# ------------------------------------------------------------------------------------------------------------- building


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties)}


def _typed(field: StdinField) -> Schema:
    return {"type": field.type}


def _or_null(schema: Mapping[str, Any]) -> Schema:
    """null means the same as leaving the value out."""
    if "type" in schema:
        types: str | list[str] = schema["type"]
        return {**schema, "type": [*([types] if isinstance(types, str) else types), "null"]}
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    return {"enum": [schema["const"], None]}


def _described(schema: Mapping[str, Any], meaning: str) -> Schema:
    return {"description": meaning, **schema}


_FREE: Mapping[str, Schema] = {
    "env": {
        "description": "variables for hooks and commands",
        "type": "object",
        "propertyNames": {"pattern": "^[^=]+$"},
        "additionalProperties": _or_null(_TEXT),
    },
    "models": {
        "description": "facts about models, by name",
        "type": "object",
        "additionalProperties": _or_null(MODEL_SCHEMA),
    },
}
"""Sections whose keys are names chosen by the user."""
