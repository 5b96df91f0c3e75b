"""What a project's agents, skills and commands may do, for the person who decides whether to trust them.

Loaded when there is something to review.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from wave_agent.agent.command_text import AttachFile, RunLine, unfilled_pieces
from wave_agent.agent.skills import allowed_by
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.settings.agent_definitions import AgentDefinition, definitions_in
from wave_agent.settings.extension_files import FoundExtension
from wave_agent.settings.extensions import ExtensionFile, load_extensions
from wave_agent.settings.places import ExtensionKind
from wave_agent.settings.sources import hook_in_words
from wave_agent.text import reveal

_NO_EFFECT = ("hooks", "disallowed-tools", "model", "effort", "context", "agent")
"""Keys of skills and commands that mean something to other agents, and nothing here."""


class ExtensionReview(Struct, frozen=True, kw_only=True):
    """One agent, skill or command, as a person has to judge it."""

    description: str = ""
    may: tuple[str, ...] = ()
    """What it may do, and which parts of it are without effect. One line each."""
    left_out: str | None = None
    """Why it is not used, whether or not it is trusted."""


def review(texts: Iterable[FoundExtension], project: str) -> Mapping[str, ExtensionReview]:
    """By the path of their files."""
    texts = tuple(texts)
    loaded = load_extensions(texts, project, lambda _: None)
    by_other = {both.file.path: both.by.path for both in loaded.shadowed}
    files = [*loaded.files, *(both.file for both in loaded.shadowed)]
    found = {file.path: _file(file, by_other.get(file.path)) for file in files}
    unused = {one.path: one.why for one in loaded.unused}
    return {
        one.path: found.get(one.path)
        or ExtensionReview(left_out=f"it {unused.get(reveal(one.shown(project)), 'cannot be read')}")
        for one in texts
    }


def _file(file: ExtensionFile, by_other: str | None) -> ExtensionReview:
    shadow = (f"not used: {by_other} has the same name",) if by_other else ()
    if file.kind is not ExtensionKind.AGENTS:
        return ExtensionReview(description=file.description, may=(*_prompt(file), *shadow))
    # Each by itself: of two with one name, only one would be returned.
    definitions, problems = definitions_in([file])
    if (wrong := next((str(one) for one in problems if one.left_out), None)) is not None:
        return ExtensionReview(left_out=wrong)
    (definition,) = definitions.values()
    ignored = (f"without effect: {one.field} {one.message}" for one in problems)
    return ExtensionReview(description=definition.description, may=(*_agent(definition), *ignored, *shadow))


def _prompt(file: ExtensionFile) -> Iterator[str]:
    """What a command or a skill may do."""
    rules, problems = allowed_by(file)
    if rules:
        yield f"allows without asking: {', '.join(rule.text for rule in rules)}"
    if not file.flag("user-invocable", default=True):
        yield "only the model can load it"
    else:
        pieces = unfilled_pieces(file.body)
        yield from dict.fromkeys(
            f"runs, when called as /{file.name}: {one.line}" for one in pieces if isinstance(one, RunLine)
        )
        attached = dict.fromkeys(one.path for one in pieces if isinstance(one, AttachFile))
        if attached:
            yield f"attaches: {', '.join(attached)}"
    yield from (f"without effect: {problem}" for problem in problems)
    if without := [key for key in _NO_EFFECT if key in file.front]:
        yield f"without effect: {', '.join(without)}"


def _agent(definition: AgentDefinition) -> Iterator[str]:
    """What a subagent may do."""
    tools = "all of the session" if definition.tools is None else ", ".join(definition.tools) or "none"
    without = f", without {', '.join(definition.disallowed_tools)}" if definition.disallowed_tools else ""
    yield f"tools: {tools}{without}"
    facts = {
        "MCP servers": "" if definition.mcp_servers is None else ", ".join(definition.mcp_servers) or "none",
        "permission mode": definition.permission_mode,
        "model": definition.model,
        "skills": ", ".join(definition.skills),
    }
    yield from (f"{name}: {value}" for name, value in facts.items() if value)
    yield from (f"hook {_hook(one)}" for one in definition.hooks)


def _hook(hook: HookDefinition) -> str:
    where = f" for {hook.matcher.text}" if hook.matcher.text not in ("", "*") else ""
    return f"on {hook.event}{where}: {hook_in_words(hook)}"
