"""The types of subagents of one session, with those of their hooks that run in it."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.hooks.definitions import HookDefinition
from wave_agent.settings.agent_definitions import AgentDefinition, DefinitionProblem, definitions_in, placed
from wave_agent.settings.built_in_agents import with_built_in_limits
from wave_agent.settings.places import OF_THE_PROJECT, ExtensionKind
from wave_agent.settings.sources import Gathered
from wave_agent.text import reveal
from wave_agent.tools.task import unreplaced


class SessionAgents(Struct, frozen=True, kw_only=True):
    """Besides those that are built in."""

    definitions: Mapping[str, AgentDefinition] = {}
    problems: tuple[DefinitionProblem, ...] = ()
    """With those in files."""
    silenced: tuple[HookDefinition, ...] = ()
    """Their hooks that do not run, because those of their layer do not."""
    replacing: tuple[str, ...] = ()
    """Which definitions of the project replace built-in types."""
    withheld: Mapping[str, str] = {}
    """Built-in types that are not offered, each with the file that was to replace it: its limits and hooks would be
    missing."""

    @property
    def notices(self) -> tuple[str, ...]:
        """For the user and the transcript."""
        names = ", ".join(reveal(f"{hook.name} ({hook.event}, {hook.agent})") for hook in self.silenced)
        silenced = (f"These hooks of subagents do not run in this session either: {names}.",) if names else ()
        withheld = (
            f"The subagent {name} is not available in this session: {reveal(path)} replaces it, but cannot be used."
            for name, path in self.withheld.items()
        )
        return (*map(str, self.problems), *self.replacing, *silenced, *withheld)


def session_agents(gathered: Gathered, in_code: Mapping[str, AgentDefinition] | None = None) -> SessionAgents:
    """Those in files and in code; the latter win."""
    files = {} if gathered.extensions is None else gathered.extensions.of(ExtensionKind.AGENTS)
    found, problems = definitions_in(files.values())
    limited = with_built_in_limits(found, [name for name, file in files.items() if file.layer in OF_THE_PROJECT])
    settings = gathered.settings
    found = placed({**limited.definitions, **(in_code or {})}, settings.hooks.hooks, strict=settings.strict_hooks)
    off = gathered.layers_without_hooks
    unused = () if gathered.extensions is None else gathered.extensions.unused
    left_out = {
        **{name.casefold(): one.path for one in unused for name in one.types},
        **{name.casefold(): file.path for name, file in files.items() if name not in found},
    }
    return SessionAgents(
        definitions={
            name: replace(one, hooks=tuple(hook for hook in one.hooks if hook.layer not in off))
            for name, one in found.items()
        },
        problems=problems,
        withheld={name: left_out[name] for name in unreplaced(found) if name in left_out},
        replacing=limited.notices,
        silenced=tuple(hook for one in found.values() for hook in one.hooks if hook.layer in off),
    )
