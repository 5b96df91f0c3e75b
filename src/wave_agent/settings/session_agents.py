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


class SessionAgents(Struct, frozen=True, kw_only=True):
    """Besides those that are built in."""

    definitions: Mapping[str, AgentDefinition] = {}
    problems: tuple[DefinitionProblem, ...] = ()
    """With those in files."""
    silenced: tuple[HookDefinition, ...] = ()
    """Their hooks that do not run, because those of their layer do not."""
    replacing: tuple[str, ...] = ()
    """Which definitions of the project replace built-in types."""

    @property
    def notices(self) -> tuple[str, ...]:
        """For the user and the transcript."""
        names = ", ".join(reveal(f"{hook.name} ({hook.event}, {hook.agent})") for hook in self.silenced)
        silenced = (f"These hooks of subagents do not run in this session either: {names}.",) if names else ()
        return (*map(str, self.problems), *self.replacing, *silenced)


def session_agents(gathered: Gathered, in_code: Mapping[str, AgentDefinition] | None = None) -> SessionAgents:
    """Those in files and in code; the latter win."""
    files = {} if gathered.extensions is None else gathered.extensions.of(ExtensionKind.AGENTS)
    found, problems = definitions_in(files.values())
    limited = with_built_in_limits(found, [name for name, file in files.items() if file.layer in OF_THE_PROJECT])
    settings = gathered.settings
    found = placed({**limited.definitions, **(in_code or {})}, settings.hooks.hooks, strict=settings.strict_hooks)
    off = gathered.layers_without_hooks
    return SessionAgents(
        definitions={
            name: replace(one, hooks=tuple(hook for hook in one.hooks if hook.layer not in off))
            for name, one in found.items()
        },
        problems=problems,
        replacing=limited.notices,
        silenced=tuple(hook for one in found.values() for hook in one.hooks if hook.layer in off),
    )
