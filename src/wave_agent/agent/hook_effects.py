"""The effects of a session's calls, as hooks see them."""

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from wave_agent.tools.base import Tool, ToolContext

if TYPE_CHECKING:  # a session whose hooks never see a call needs none of it
    from wave_agent.effects.values import Effects
    from wave_agent.permissions.command_surroundings import CommandSurroundings

EffectsOf = Callable[[Mapping[str, Any]], "Effects"]
"""A tool's input → what a call with it would do."""

_MOST_FILES = 200
"""Files that the disk adds to one list."""


class HookEffects:
    """Finds out what calls of one session would do, when a hook wants to know."""

    def __init__(self, context: ToolContext, search_path: str) -> None:
        """`search_path` is where git is looked up."""
        self._context = context
        self._search_path = search_path

    @cached_property
    def _commands(self) -> "CommandSurroundings":
        from wave_agent.permissions.command_surroundings import CommandSurroundings  # lazy: see above
        from wave_agent.permissions.git.effects import find_git

        project = str(self._context.project_dir)
        return CommandSurroundings(project, find_git(self._search_path, project))

    def here(self, tool: Tool) -> EffectsOf:
        """What a call of this tool would do if it ran where the session is now. The place is remembered: after the
        call, the session may be somewhere else."""
        context = self._context
        directory = tool.directory() or str(context.cwd)

        def effects(tool_input: Mapping[str, Any]) -> "Effects":
            from wave_agent.effects.calls import effects_of  # lazy: see above

            variables = {"WAVE_PROJECT_DIR": str(context.project_dir), **context.environment, "PWD": directory}
            return _as_found(effects_of(tool.name, tool_input, self._commands.at(directory, variables)))

        return effects


def _as_found(effects: "Effects") -> "Effects":
    """With what the disk adds: a path that leads through a link also stands for its target, and a pattern for the files
    that it matches now. The patterns stay, and those that span directories are not searched."""
    from msgspec.structs import replace  # lazy: see above

    return replace(
        effects, reads=_found(effects.reads), writes=_found(effects.writes), deletes=_matching(effects.deletes)
    )


def _found(entries: tuple[str, ...]) -> tuple[str, ...]:
    from wave_agent.rules.touched import literal  # lazy: see above
    from wave_agent.shell.values import escape

    matching = _matching(entries)
    named = [path for path in map(literal, matching[: 2 * _MOST_FILES]) if path is not None]
    return tuple(dict.fromkeys((*matching, *(escape(os.path.realpath(path)) for path in named))))


def _matching(entries: tuple[str, ...]) -> tuple[str, ...]:
    from wave_agent.rules.touched import literal  # lazy: see above

    patterns = [entry for entry in entries if "**" not in entry and literal(entry) is None]
    if not patterns:
        return entries
    from glob import iglob  # lazy: see above

    from wave_agent.shell.values import escape

    files = (escape(path) for pattern in patterns for path in iglob(pattern))
    return tuple(dict.fromkeys((*entries, *islice(files, _MOST_FILES))))
