"""The effects of a call, tool by tool."""

from collections.abc import Callable, Mapping, Sequence
from posixpath import isabs, join, normpath
from typing import Any

from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import ANY_HOST, NO_EFFECTS, UNKNOWN_EFFECTS, Effects
from wave_agent.shell.values import escape

_Input = Mapping[str, Any]
OF_SERVERS = "mcp__"
"""How the names of MCP servers' tools begin."""


def effects_of(tool_name: str, tool_input: _Input, surroundings: Surroundings, bases: Sequence[str] = ()) -> Effects:
    """What this call would do, if it ran now.

    Total: any name and any input has effects, and nothing is run. A tool that is not in the table may do anything, and
    so may a call with an input that its tool would refuse. Of an MCP server's tool, the arguments may name what it
    touches; `bases` are further directories that its relative paths may start from.
    """
    if tool_name.startswith(OF_SERVERS):
        from wave_agent.effects.arguments import argument_effects  # lazy: most sessions have no such tools

        return argument_effects(tool_input, surroundings, bases)
    row = TOOLS.get(tool_name)
    return UNKNOWN_EFFECTS if row is None else row(tool_input, surroundings)


def _path(value: object, surroundings: Surroundings) -> str | None:
    if not isinstance(value, str) or not value or "\0" in value:
        return None
    home = surroundings.variables.get("HOME")
    if home and (value == "~" or value.startswith("~/")):
        value = home + value[1:]
    path = normpath(join(surroundings.directory, value))
    return escape(path[1:] if path.startswith("//") else path)


def _file(*, reads: bool = False, writes: bool = False, key: str = "file_path") -> Callable[..., Effects]:
    def effects(tool_input: _Input, surroundings: Surroundings) -> Effects:
        path = _path(tool_input.get(key), surroundings)
        if path is None:
            return UNKNOWN_EFFECTS
        return Effects(reads=(path,) if reads else (), writes=(path,) if writes else ())

    return effects


def _nothing(_: _Input, _surroundings: Surroundings) -> Effects:
    return NO_EFFECTS


def _grep(tool_input: _Input, surroundings: Surroundings) -> Effects:
    """A file, or everything below a directory that has a matching name."""
    path = _path(tool_input.get("path") or ".", surroundings)
    name = tool_input.get("glob")
    if path is None or not (name is None or isinstance(name, str)):
        return UNKNOWN_EFFECTS
    # Braces and exclusions are more than a pattern can say: then it is any file.
    plain = name is not None and name and not any(sign in name for sign in "{}!,") and not isabs(name)
    return Effects(reads=(path, join(path, "**", name) if plain and name else join(path, "**")))


def _bash(tool_input: _Input, surroundings: Surroundings) -> Effects:
    line = tool_input.get("command")
    if not isinstance(line, str):
        return UNKNOWN_EFFECTS
    # lazy: the tables of programs are not needed in a session that runs no command
    from wave_agent.effects.lines import line_effects

    return line_effects(line, surroundings)


def _fetch(tool_input: _Input, _surroundings: Surroundings) -> Effects:
    from wave_agent.effects.page_urls import page_host  # lazy: see above

    host = page_host(tool_input.get("url"))
    return Effects(hosts=(host,), complete=host != ANY_HOST)


def _search(_: _Input, _surroundings: Surroundings) -> Effects:
    return Effects(hosts=(ANY_HOST,))


TOOLS: Mapping[str, Callable[[_Input, Surroundings], Effects]] = {
    "Read": _file(reads=True),
    "Write": _file(writes=True),
    **dict.fromkeys(("Edit", "MultiEdit"), _file(reads=True, writes=True)),
    "NotebookEdit": _file(reads=True, writes=True, key="notebook_path"),
    "Grep": _grep,
    "Bash": _bash,
    "WebFetch": _fetch,
    "WebSearch": _search,
    # Names of files, output of a command that was judged when it started, a list of the agent's own, calls that are
    # judged one by one.
    **dict.fromkeys(("Glob", "LS", "BashOutput", "KillShell", "TodoWrite", "Task", "Agent"), _nothing),
}
