"""The built-in tools, and finding a tool by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from wave_agent.tools.base import Tool, ToolInputError
from wave_agent.tools.bash import Bash
from wave_agent.tools.bash_output import BashOutput
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.edit import Edit
from wave_agent.tools.glob import Glob
from wave_agent.tools.grep import Grep
from wave_agent.tools.kill_shell import KillShell
from wave_agent.tools.read import Read
from wave_agent.tools.shells import EarlierShell, Shells
from wave_agent.tools.todo import TodoWrite
from wave_agent.tools.web_fetch import WebFetch
from wave_agent.tools.write import Write


def builtin_tools(
    changes: FileChanges | None = None, earlier: Sequence[EarlierShell] = (), left: str | None = None
) -> tuple[Tool, ...]:
    """New instances for one session: they share what was read, what was changed and what runs in the background.

    `earlier` and `left` are for a resumed session: see `Shells`.
    """
    changes, shells = changes or FileChanges(), Shells(earlier, left)
    known = changes.known
    return (
        Bash(shells, known=known),
        BashOutput(shells),
        KillShell(shells),
        Read(known),
        Write(known, changes),
        Edit(known, changes),
        Glob(),
        Grep(),
        TodoWrite(),
        WebFetch(),
    )


class ToolsOnCall:
    """Tools that are loaded with their first call. Models know them from elsewhere, and hooks and rules name them, but
    few sessions need them: offering them would take room in every request."""

    def __init__(self, changes: FileChanges, permits: Callable[[str], bool] = lambda _: True) -> None:
        """`permits` says whether a tool of this name may be called at all."""
        self._changes = changes
        self._permits = permits
        self._loaded: dict[str, Tool] = {}

    def find(self, name: str) -> Tool | None:
        if name in _ON_CALL and name not in self._loaded and self._permits(name):
            tool = getattr(import_module(f"wave_agent.tools.{_ON_CALL[name]}"), name)
            self._loaded[name] = tool(self._changes.known, self._changes)
        return self._loaded.get(name)


_ON_CALL = {"MultiEdit": "multi_edit", "NotebookEdit": "notebook_edit"}
"""By their names: the module of each tool."""
EDITS_ON_CALL = tuple(_ON_CALL)
"""Those that edit files."""


def every_tool() -> tuple[Tool, ...]:
    """All tools that can be called, in one new session."""
    changes = FileChanges()
    late = ToolsOnCall(changes)
    return (*builtin_tools(changes), *(tool for name in _ON_CALL if (tool := late.find(name)) is not None))


class GrowingTools(Mapping[str, Tool]):
    """The tools of a session, and after them those that others add while it runs. No added tool takes a name that is
    in use."""

    def __init__(self, own: Mapping[str, Tool], added: Mapping[str, Tool]) -> None:
        """`added` may change at any time."""
        self._own = own
        self._added = added

    def __getitem__(self, name: str) -> Tool:
        return self._own[name] if name in self._own else self._added[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from [name for name in self._added if name not in self._own]

    def __len__(self) -> int:
        return len(list(iter(self)))


def find_tool(
    name: str,
    tools: Iterable[Tool],
    given: Mapping[str, Any] | None = None,
    *,
    in_plan_mode: bool = False,
    is_subagent: bool = False,
    again: bool = False,
) -> Tool:
    """Raises a `ToolInputError` that says which tool to call instead, judging by the name and the input of the call.
    `again`: the model has made such a call before."""
    by_name = {tool.name: tool for tool in tools}
    if name in by_name:
        return by_name[name]
    from wave_agent.tools.unknown_tools import Circumstances, advice  # lazy: most calls name a tool that exists

    here = Circumstances(in_plan_mode, is_subagent, again)
    raise ToolInputError(f'There is no tool "{name}". {advice(name, by_name, given or {}, here)}')
