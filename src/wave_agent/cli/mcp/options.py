"""Shared by the `wave mcp` commands."""

import os
from collections.abc import Mapping
from typing import Any, cast

import click

from wave_agent.agent.options import locate_project
from wave_agent.mcp.secrets import HIDDEN, shown_url, shown_words
from wave_agent.mcp.server_files import Scope, ServerFile, read_server_file
from wave_agent.sessions.masking import mask
from wave_agent.text import did_you_mean

_SECRET = ("env", "headers")

scope_option = click.option(
    "--scope",
    type=click.Choice([scope.value for scope in Scope]),
    help="user: your settings, for all projects. project: .mcp.json, for everyone who works on it. local: your "
    "settings for this project.",
)


def server_files(cwd: str | None, scope: str | None = None) -> dict[Scope, ServerFile]:
    """The files that `wave mcp` edits, or the one of this scope."""
    project, home = locate_project(cwd, os.environ)
    wanted = Scope if scope is None else (Scope(scope),)
    return {one: read_server_file(one, home, project.directory) for one in wanted}


def unknown_server(name: str, known: list[str]) -> click.UsageError:
    return click.UsageError(f'There is no server "{name}"{did_you_mean(name, known)}. wave mcp list shows them all.')


def shown_entry(entry: Any, *, secrets: bool = False) -> Any:
    """An entry for output: values of `env` and `headers` are hidden, unless they only name a variable."""
    if secrets or not isinstance(entry, Mapping):
        return entry
    parts = cast(Mapping[str, Any], entry)
    shown = {key: _hidden(value) if key in _SECRET else _masked(value) for key, value in parts.items()}
    if isinstance(words := shown.get("args"), list):
        shown["args"] = shown_words([*map(str, cast(list[Any], words))])
    if isinstance(url := shown.get("url"), str):
        shown["url"] = shown_url(url)
    return shown


def _hidden(values: Any) -> Any:
    if not isinstance(values, Mapping):
        return HIDDEN
    return {key: value if _is_variable(value) else HIDDEN for key, value in cast(Mapping[str, Any], values).items()}


def _is_variable(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("${") and value.endswith("}") and ":-" not in value


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return mask(value)
    return [_masked(one) for one in cast(list[Any], value)] if isinstance(value, list) else value


def command_line(entry: Mapping[str, Any]) -> str:
    """What runs, or where it is, on one line. `entry` is one from `shown_entry`."""
    import shlex  # lazy: few commands print one

    if url := entry.get("url"):
        return str(url)
    arguments: Any = entry.get("args")
    words = [entry.get("command", ""), *(cast(list[Any], arguments) if isinstance(arguments, list) else [])]
    return shlex.join(map(str, words))
