"""What the calls of a session would do: their effects, where the session is now."""

import os
import stat
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from wave_agent.tools.base import Tool, ToolContext

if TYPE_CHECKING:
    from wave_agent.effects.surroundings import Surroundings
    from wave_agent.effects.values import Effects

EffectsOf = Callable[[Mapping[str, Any]], "Effects"]
"""A tool's input → what a call with it would do."""

_LONGEST = 256 * 1024
"""Bytes of a script that is looked into."""
_MOST_LINKS = 200


def effects_here(tool: Tool, context: ToolContext) -> EffectsOf:
    """What a call of this tool would do if it ran where the session is now. The place is remembered: a call that has
    run may have moved the session."""
    directory = tool.directory() or str(context.cwd)

    def effects(tool_input: Mapping[str, Any]) -> "Effects":
        from wave_agent.effects.calls import effects_of  # lazy: most sessions have neither hooks nor rules for it

        return _with_targets(effects_of(tool.name, tool_input, _surroundings(context, directory)))

    return effects


def _surroundings(context: ToolContext, directory: str) -> "Surroundings":
    from wave_agent.effects.surroundings import Surroundings  # lazy: see above

    project = str(context.project_dir)
    return Surroundings(
        directory=directory,
        project=project,
        variables={"WAVE_PROJECT_DIR": project, **context.environment, "PWD": directory},
        read_text=lambda path: _text(path, project),
    )


def _text(path: str, project: str) -> str | None:
    """The text of a script of the project; None if it is too long, no file, or somewhere else."""
    real = os.path.realpath(path)
    if not real.startswith(f"{os.path.realpath(project)}/"):
        return None
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _LONGEST:
                return None
            return file.read(_LONGEST).decode()
    except (OSError, ValueError):
        return None


def _with_targets(effects: "Effects") -> "Effects":
    """A path that leads through a link also stands for its target."""
    from msgspec.structs import replace

    reads, writes = _targets(effects.reads), _targets(effects.writes)
    if len(reads) == len(effects.reads) and len(writes) == len(effects.writes):
        return effects
    return replace(effects, reads=reads, writes=writes)


def _targets(paths: tuple[str, ...]) -> tuple[str, ...]:
    from wave_agent.rules.touched import literal  # lazy: see above
    from wave_agent.shell.values import escape

    named = [path for path in (literal(entry) for entry in paths[:_MOST_LINKS]) if path is not None]
    return tuple(dict.fromkeys((*paths, *(escape(os.path.realpath(path)) for path in named))))
