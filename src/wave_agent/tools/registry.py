"""The tools that come with the agent, and finding one by its name."""

from collections.abc import Iterable, Sequence

from wave_agent.text import did_you_mean
from wave_agent.tools.base import Tool, ToolInputError
from wave_agent.tools.bash import Bash
from wave_agent.tools.bash_output import BashOutput
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.edit import Edit
from wave_agent.tools.files import KnownFiles
from wave_agent.tools.glob import Glob
from wave_agent.tools.grep import Grep
from wave_agent.tools.kill_shell import KillShell
from wave_agent.tools.read import Read
from wave_agent.tools.shells import EarlierShell, Shells
from wave_agent.tools.todo import TodoWrite
from wave_agent.tools.write import Write


def builtin_tools(changes: FileChanges | None = None, earlier: Sequence[EarlierShell] = ()) -> tuple[Tool, ...]:
    """Fresh ones, for one session: they share what was read, what was changed and what runs in the background.

    `earlier` are the background commands from before the session was resumed.
    """
    known, changes, shells = KnownFiles(), changes or FileChanges(), Shells(earlier)
    return (
        Bash(shells),
        BashOutput(shells),
        KillShell(shells),
        Read(known),
        Write(known, changes),
        Edit(known, changes),
        Glob(),
        Grep(),
        TodoWrite(),
    )


def find_tool(name: str, tools: Iterable[Tool]) -> Tool:
    """Raises `ToolInputError` that names what there is."""
    by_name = {tool.name: tool for tool in tools}
    if name not in by_name:
        raise ToolInputError(f'There is no tool "{name}"{did_you_mean(name, by_name)}: there are {", ".join(by_name)}')
    return by_name[name]
