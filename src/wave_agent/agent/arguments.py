"""Checks the arguments of `Agent.create` before anything is done with them: a mistake is reported where it was made.

Only shapes are checked here. What a value means (a mode, an event, a rule) is checked where it is used.
"""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from wave_agent.agent.approval import is_async
from wave_agent.agent.result import Callbacks
from wave_agent.errors import ArgumentError
from wave_agent.formats.readable import why_unreadable
from wave_agent.hooks.definitions import Layer
from wave_agent.settings.agent_definitions import AgentDefinition, DefinitionSource, definition_from
from wave_agent.text import NAME_LIMIT, did_you_mean
from wave_agent.tools.base import Tool

CALLBACKS: tuple[str, ...] = Callbacks.__struct_fields__


def require_usable(arguments: Mapping[str, Any]) -> None:
    """Raises an `ArgumentError` that names the first invalid argument."""
    for name, check in _CHECKS.items():
        value = arguments.get(name)
        if value is not None:
            check(name, value)


def callbacks_from(given: object) -> Callbacks:
    """Raises `ArgumentError`."""
    if given is None or isinstance(given, Callbacks):
        found = given or Callbacks()
    elif isinstance(given, Mapping):
        named = cast(Mapping[object, Any], given)
        for key in named:
            if key not in CALLBACKS:
                hint = did_you_mean(key, CALLBACKS) if isinstance(key, str) else ""
                raise ArgumentError(f"callbacks has no {key!r}{hint}; the names are {', '.join(CALLBACKS)}.")
        found = Callbacks(**cast(dict[str, Any], dict(named)))
    else:
        raise _wrong("callbacks", "Callbacks(…) or a dict with its names", given)
    for name in CALLBACKS:
        callback: object = getattr(found, name)
        if callback is not None:
            _function(f"callbacks: {name}", callback)
        if callable(callback) and is_async(callback):
            raise ArgumentError(
                f"callbacks: {name} is async and would not be awaited. Pass a plain function; it may start a task."
            )
    return found


def agents_from(given: object) -> dict[str, AgentDefinition] | None:
    """Raises `ArgumentError`."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise _wrong("agents", "a dict of definitions by name", given)
    found: dict[str, AgentDefinition] = {}
    for name, one in cast(Mapping[object, object], given).items():
        if not isinstance(one, Mapping):
            raise _wrong(f"agents: {name}", "a dict with at least description and prompt", one)
        fields = cast(Mapping[str, Any], one)
        prompt = fields.get("prompt", "")
        if not isinstance(prompt, str):
            raise _wrong(f"agents: {name}: prompt", "a string", prompt)
        source = DefinitionSource(name=f"agents: {name}", layer=Layer.CODE)
        definition, problems = definition_from(name, fields, prompt, source)
        if problems or definition is None:
            raise ArgumentError("\n".join(f"{one.source}: {one.field}: {one.message}." for one in problems))
        found[definition.name] = definition
    return found


def returned_coroutine(name: str) -> ArgumentError:
    """The error for a callback that turns out to be async only when it is called."""
    return ArgumentError(
        f"callbacks: {name} returned a coroutine, which is not awaited. Start a task: asyncio.create_task(…)."
    )


def _wrong(name: str, wanted: str, value: object) -> ArgumentError:
    return ArgumentError(f"{name} must be {wanted}, not {_shown(value)}.")


def _shown(value: object) -> str:
    """A value as the reader may recognise it, whatever its `repr` does."""
    kind = type(value).__name__
    return f"{kind} {value!r:.60}" if isinstance(value, str | int | float | bytes | list | tuple | dict) else kind


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise _wrong(name, "a string", value)


def _secret(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a string, not {type(value).__name__}.")  # without the value: it may be one


def _path(name: str, value: object) -> None:
    if not isinstance(value, str | os.PathLike):
        raise _wrong(name, "a path", value)


def _mapping(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise _wrong(name, "an object of events: a dict in the shape of the settings' hooks", value)


def _servers(name: str, value: object) -> None:
    wanted = f"{name} must be a dict of servers by name, in the form of .mcp.json"
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{wanted}, not {type(value).__name__}.")  # without the value: it may contain a secret
    for one in cast(Mapping[object, object], value):
        if not isinstance(one, str):
            raise ArgumentError(f"{wanted}; {_shown(one)} is not a name.")


def _settings(name: str, value: object) -> None:
    if not isinstance(value, str | os.PathLike | Mapping):
        raise _wrong(name, "the path of a file or a dict", value)


def _names(name: str, value: object) -> None:
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise _wrong(name, "a list of names", value)
    for one in cast(Iterable[object], value):
        _text(f"{name}: each", one)


def _count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, "a whole number", value)


def _dollars(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(name, "a number of US dollars", value)


def _function(name: str, value: object) -> None:
    if not callable(value):
        raise _wrong(name, "a function", value)
    if not _takes_one(value):
        raise ArgumentError(f"{name} must be a function of one argument; {_name_of(value)} takes others.")


def _takes_one(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(object())
    except TypeError:
        return False
    except ValueError:  # no signature available
        pass
    return True


def _tools(name: str, value: object) -> None:
    if isinstance(value, Tool | str) or not isinstance(value, Sequence):
        raise _wrong(name, "a list of tools", cast(object, value))
    seen: set[str] = set()
    for one in cast(Iterable[object], value):
        if not isinstance(one, Tool):
            raise _no_tool(one)
        if one.name in seen:
            raise ArgumentError(f'tools: two are called "{one.name}"; the model and hooks know a tool by its name.')
        if not 0 < len(one.name) <= NAME_LIMIT or why_unreadable(one.name):
            raise ArgumentError(f"tools: a name has 1 to {NAME_LIMIT} plain-text characters, not {one.name!r:.60}.")
        seen.add(one.name)


def _no_tool(value: object) -> ArgumentError:
    name = _name_of(value)
    if isinstance(value, type):
        return ArgumentError(f"tools: {name} is a class; pass an instance, such as {name}().")
    if callable(value):
        return ArgumentError(f"tools: {name} is not a tool; decorate the function with @tool (from wave_agent).")
    return _wrong("tools: each", "a function with @tool above it, or an instance of a subclass of Tool", value)


def _name_of(value: object) -> str:
    return str(getattr(value, "__name__", type(value).__name__))


def _with(*methods: str) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        for method in methods:
            if isinstance(value, type) or not callable(getattr(value, method, None)):
                needed = " and ".join(f"{one}()" for one in methods)
                raise _wrong(name, f"an object with {needed}", value)

    return check


_CHECKS: Mapping[str, Callable[[str, object], None]] = {
    "workdir": _path,
    "model": _text,
    "base_url": _text,
    "api_key": _secret,
    "api": _text,
    "hooks": _mapping,
    "tools": _tools,
    "system_prompt": _text,
    "permission_mode": _text,
    "can_use_tool": _function,
    "settings": _settings,
    "setting_sources": _names,
    "max_turns": _count,
    "max_cost": _dollars,
    "max_output_tokens": _count,
    "effort": _text,
    "fallback_model": _text,
    "resume": _text,
    "model_client": _with("stream", "close"),
    "hook_runner": _with("run"),
    "mcp_servers": _servers,
    "mcp_host": _with("connect", "call", "close"),
}
"""The check for each argument; `callbacks`, `agents` and `trust` are checked separately."""
