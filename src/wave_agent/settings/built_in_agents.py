"""The types of subagents that every session has, and what becomes of a project's definition with the name of one.

A project may change the instructions of such a subagent. It may not widen what the subagent can do: who calls
`explore` relies on its only reading.
"""

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.settings.agent_definitions import AgentDefinition
from wave_agent.text import reveal
from wave_agent.tools.task import BUILT_IN

_EXPLORE = """\
You explore a project for another agent. You can only read: find what you are asked for with Glob, Grep and Read.

- Search broadly first, then read what matters. Put independent calls into one answer.
- Report what you found, with file:line for each statement, and say what you did not find. Quote only the lines that \
matter."""


def built_in_agents() -> dict[str, AgentDefinition]:
    """Those that every session has."""
    own: Mapping[str, AgentDefinition] = {
        "explore": AgentDefinition(name="", description="", prompt=_EXPLORE, tools=("Read", "Glob", "Grep"))
    }
    plain = AgentDefinition(name="", description="")
    return {name: replace(own.get(name, plain), name=name, description=about) for name, about in BUILT_IN.items()}


class KeptLimits(Struct, frozen=True):
    """Definitions that stay within the limits of the built-in types they replace."""

    definitions: Mapping[str, AgentDefinition]
    notices: tuple[str, ...] = ()


def with_built_in_limits(definitions: Mapping[str, AgentDefinition], of_project: Collection[str]) -> KeptLimits:
    """`of_project` names the definitions that come from the project. The user's own may do as they like. Pure."""
    known = {name.casefold(): one for name, one in built_in_agents().items()}
    kept: dict[str, AgentDefinition] = {}
    notices: list[str] = []
    for name, one in definitions.items():
        replaced = known.get(name.casefold()) if name in of_project else None
        kept[name] = one if replaced is None else _within(one, replaced)
        if replaced is not None:
            notices.append(_notice(one, kept[name], replaced))
    return KeptLimits(kept, tuple(notices))


def _within(definition: AgentDefinition, replaced: AgentDefinition) -> AgentDefinition:
    if replaced.tools is None:
        return definition
    return replace(definition, tools=tuple(name for name in replaced.tools if definition.has_tool(name)))


def _notice(given: AgentDefinition, kept: AgentDefinition, replaced: AgentDefinition) -> str:
    end = ""
    if given.tools != kept.tools:
        tools = ", ".join(kept.tools or ())
        limit = f"has no other tools than {tools}" if tools else "has no tools"
        end = f" It still {limit}; for more, give it another name."
    return f"{reveal(given.source)} replaces the built-in subagent {replaced.name} in this project.{end}"
