"""The effects of calls, as hooks see them: with what the disk adds."""

import os
from collections.abc import Mapping, Sequence
from glob import iglob
from itertools import islice
from typing import Any

from msgspec.structs import replace

from wave_agent.agent.call_effects import EffectsFinder
from wave_agent.effects.calls import effects_of
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import Effects
from wave_agent.hooks.stage import EffectsOf
from wave_agent.rules.touched import literal
from wave_agent.shell.values import escape
from wave_agent.tools.base import Tool, ToolContext

_MOST_FILES = 200
"""Files that the disk adds to one list."""


def hook_effects(
    tool: str, tool_input: Mapping[str, Any], surroundings: Surroundings, bases: Sequence[str] = ()
) -> Effects:
    """What the call would do, with what the disk adds: a path that leads through a link also stands for its target, and
    a pattern for the files that it matches now. The patterns stay, and those that span directories are not searched."""
    effects = effects_of(tool, tool_input, surroundings, bases)
    return replace(
        effects, reads=_found(effects.reads), writes=_found(effects.writes), deletes=_matching(effects.deletes)
    )


def effects_outside(tool: Tool, context: ToolContext, search_path: str) -> EffectsOf:
    """For calls outside a session. `search_path` is where git is looked up."""
    calls, place = EffectsFinder(context, search_path), tool.place(context)
    return lambda tool_input: hook_effects(tool.name, tool_input, calls.at(*place), tool.bases())


def _found(entries: tuple[str, ...]) -> tuple[str, ...]:
    matching = _matching(entries)
    named = [path for path in map(literal, matching[: 2 * _MOST_FILES]) if path is not None]
    return tuple(dict.fromkeys((*matching, *(escape(os.path.realpath(path)) for path in named))))


def _matching(entries: tuple[str, ...]) -> tuple[str, ...]:
    patterns = [entry for entry in entries if "**" not in entry and literal(entry) is None]
    files = (escape(path) for pattern in patterns for path in iglob(pattern))
    return tuple(dict.fromkeys((*entries, *islice(files, _MOST_FILES)))) if patterns else entries
