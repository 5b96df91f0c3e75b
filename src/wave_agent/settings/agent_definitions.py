"""Definitions of subagents: what a front matter, or `agents=` in code, says about one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.formats.strict_json import Document, type_name
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.events import EVENTS, FailureBlock, HookEvent, OnFailure
from wave_agent.hooks.matcher import KNOWN_TOOLS
from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.decision import PermissionMode
from wave_agent.rules.rule import Places, RuleError, parse_rule
from wave_agent.settings.hook_entries import MAX_HOOKS, Issue, SettingsSource
from wave_agent.text import did_you_mean

NAME = lazy_regex(r"[a-z0-9]+(?:[-_][a-z0-9]+)*", re.IGNORECASE)
USUAL_MODEL = frozenset({"inherit", "sonnet", "opus", "haiku", "fable", "default"})
"""Names in files for other agents, and in calls of models that know those, for one of their own models or the one in
use."""
_FOR_COMMANDS = ("BashOutput", "KillShell")


class AgentDefinition(Struct, frozen=True, kw_only=True):
    """One type of subagent."""

    name: str
    description: str
    """For the model that chooses it."""
    prompt: str = ""
    """Instructions in place of the agent's own; empty: those."""
    tools: tuple[str, ...] | None = None
    """Names of tools; None: all."""
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    """None: that of the agent above."""
    permission_mode: PermissionMode | None = None
    max_turns: int | None = None
    """Model requests."""
    skills: tuple[str, ...] = ()
    """Skills whose text it has from the start."""
    mcp_servers: tuple[str, ...] | None = None
    """Names of servers whose tools it gets; None: all."""
    hooks: tuple[HookDefinition, ...] = ()
    """They run in this subagent alone."""
    source: str = "built-in"
    """A file, or where else it comes from."""

    @property
    def is_limited(self) -> bool:
        """It may do less than the agent that starts it."""
        some = (self.tools, self.permission_mode, self.mcp_servers)
        return any(one is not None for one in some) or bool(self.disallowed_tools or self.hooks)

    def has_tool(self, name: str) -> bool:
        """Whether it may use the tool of this name. Who may run commands may also look after those in the background:
        Bash itself tells the model to."""
        listed = (name, "Bash") if name in _FOR_COMMANDS else (name,)
        if _names(self.disallowed_tools, name):
            return False
        if self.tools is not None and not any(_names(self.tools, one) for one in listed):
            return False
        servers = self.mcp_servers
        return servers is None or not name.startswith("mcp__") or _names([f"mcp__{one}" for one in servers], name)


def _names(listed: Iterable[str], name: str) -> bool:
    return any(parse_rule(one).matches(name, {}, _NOWHERE) for one in listed)


class DefinitionProblem(Struct, frozen=True):
    """What is wrong with a definition."""

    source: str
    field: str
    message: str
    left_out: bool = True
    """The definition is not used because of it."""

    def __str__(self) -> str:
        end = ". The subagent is left out" if self.left_out else ""
        return f"{self.source}: {self.field}: {self.message}{end}"


class DefinitionSource(Struct, frozen=True, kw_only=True):
    """Where a definition comes from."""

    name: str
    """As shown to the user: a file, or `agents: NAME`."""
    layer: Layer
    dialect: Dialect = Dialect.WAVE
    lines: Mapping[tuple[str | int, ...], int] = {}
    inner: str = ""
    """The directory of the project it belongs to, if that is below the project's root."""


def definition_from(
    name: object, front: Mapping[str, Any], prompt: str, source: DefinitionSource
) -> tuple[AgentDefinition | None, tuple[DefinitionProblem, ...]]:
    """The definition that a front matter describes, and what is wrong with it. None: it cannot be used, because what
    it needs or what limits it is missing or invalid. Pure."""
    reader = _FieldReader(str(name), front, source)
    if not isinstance(name, str) or NAME.fullmatch(name) is None or len(name) > _NAME_LENGTH:
        reader.report("name", f"must consist of letters, digits and hyphens, not {_shown(name)}")
    described = front.get("description")
    if not isinstance(described, str) or not described.strip():
        reader.report("description", "is missing: it says when to use the subagent")
    found = AgentDefinition(
        name=str(name),
        description=" ".join(str(described).split())[:_DESCRIPTION],
        prompt=prompt.strip(),
        tools=reader.tools("tools"),
        disallowed_tools=reader.tools("disallowedTools") or (),
        model=reader.model(),
        permission_mode=reader.mode(),
        max_turns=reader.count("maxTurns"),
        skills=reader.names("skills") or (),
        mcp_servers=reader.names("mcpServers"),
        hooks=reader.hooks(),
        source=source.name,
    )
    reader.check_keys()
    problems = tuple(reader.problems)
    return None if any(one.left_out for one in problems) else found, problems


class DefinitionFile(Protocol):
    """A file with a definition, as `settings.extensions` reads it."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def layer(self) -> Layer: ...
    @property
    def dialect(self) -> Dialect: ...
    @property
    def front(self) -> Mapping[str, Any]: ...
    @property
    def body(self) -> str: ...
    @property
    def document(self) -> Document: ...
    @property
    def inner(self) -> str: ...


def definitions_in(
    files: Iterable[DefinitionFile],
) -> tuple[dict[str, AgentDefinition], tuple[DefinitionProblem, ...]]:
    """The definitions in these files, and what is wrong with them. Pure."""
    found: dict[str, AgentDefinition] = {}
    problems: list[DefinitionProblem] = []
    for file in files:
        source = DefinitionSource(
            name=file.path, layer=file.layer, dialect=file.dialect, lines=file.document.lines, inner=file.inner
        )
        definition, wrong = definition_from(file.front.get("name", file.name), file.front, file.body, source)
        problems += wrong
        if definition is not None:
            found[definition.name] = definition
    return found, tuple(problems)


def hooks_as_settings(agent: str, events: Mapping[str, Any], source: DefinitionSource) -> SettingsSource:
    """The hooks of a definition in the form of settings. `Stop` means the end of the subagent. Pure."""
    entries: dict[str, Any] = {}
    lines: dict[tuple[str | int, ...], int] = {}
    for event, groups in events.items():
        here = _here(str(event))
        before: Any = entries.get(here, [])
        both = isinstance(before, list) and isinstance(groups, list)
        if both:
            entries[here] = [*cast(list[Any], before), *cast(list[Any], groups)]
        elif not isinstance(groups, list):  # which is reported
            entries[here] = groups
        shift = len(cast(list[Any], before)) if both else 0
        for path, line in source.lines.items():
            if path[:2] == ("hooks", event):
                lines[("hooks", here, *_shifted(path[2:], shift))] = line
    return SettingsSource(
        source.layer, source.name, Document({"hooks": entries}, lines), source.dialect, inner=source.inner, agent=agent
    )


def _shifted(path: tuple[str | int, ...], by: int) -> tuple[str | int, ...]:
    return (path[0] + by, *path[1:]) if path and isinstance(path[0], int) else path


def placed(
    definitions: Mapping[str, AgentDefinition], after: Sequence[HookDefinition], *, strict: bool = False
) -> dict[str, AgentDefinition]:
    """The definitions with their hooks numbered after those of the session, which they run beside. `strict`: none of
    them may fail open."""
    position, group = len(after), max((hook.group for hook in after), default=0)
    found: dict[str, AgentDefinition] = {}
    for name, one in definitions.items():
        hooks = tuple(
            replace(_strict(hook) if strict else hook, position=position + at, group=group + hook.group)
            for at, hook in enumerate(one.hooks)
        )
        position += len(hooks)
        group = max((hook.group for hook in hooks), default=group)
        found[name] = replace(one, hooks=hooks)
    return found


def _strict(hook: HookDefinition) -> HookDefinition:
    can_block = not hook.is_async and EVENTS[hook.event].failure_block is not FailureBlock.NEVER
    return replace(hook, on_failure=OnFailure.BLOCK) if can_block else hook


_NOWHERE = Places("/", "/")
_TOOLS = frozenset(name.casefold() for name in KNOWN_TOOLS)
_NAME_LENGTH = 64
_DESCRIPTION = 1024
_KEYS = (
    *("name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "skills"),
    *("mcpServers", "hooks"),
)
_WITHOUT_EFFECT = ("memory", "background", "effort", "isolation", "initialPrompt")
"""Keys of other agents that ask for something this one does not do."""
_SILENT = ("color", "prompt")


class _FieldReader:
    """Reads the fields of one front matter, each independently of the others."""

    def __init__(self, name: str, front: Mapping[str, Any], source: DefinitionSource) -> None:
        self._name = name
        self._front = front
        self._source = source
        self.problems: list[DefinitionProblem] = []

    def report(self, field: str, message: str, *, left_out: bool = True, line: int | None = None) -> None:
        line = self._source.lines.get((field,)) if line is None else line
        where = self._source.name if line is None else f"{self._source.name}:{line}"
        self.problems.append(DefinitionProblem(where, field, message, left_out))

    def names(self, field: str) -> tuple[str, ...] | None:
        """A list of names, or names with commas between them."""
        value = self._front.get(field)
        if value is None:
            return None
        listed = [one.strip() for one in value.split(",")] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in cast(list[Any], listed)):
            self.report(field, f"must be a list of names, not {_shown(value)}")
            return ()
        return tuple(one for one in cast(list[str], listed) if one)

    def tools(self, field: str) -> tuple[str, ...] | None:
        found = self.names(field)
        if found is None or (found == ("*",) and field == "tools"):
            return None
        for name in found:
            try:
                limited = parse_rule(name).pattern is not None
            except RuleError:
                self.report(field, f'"{name}" is not the name of a tool')
                continue
            if limited:
                self.report(field, f'"{name}": only names of tools; patterns belong into permission rules')
            elif name.casefold() not in _TOOLS and (meant := did_you_mean(name, KNOWN_TOOLS)):
                # A misspelt name permits nothing, but it forbids nothing either.
                self.report(field, f'"{name}" is not a built-in tool{meant}', left_out=field == "disallowedTools")
        return found

    def model(self) -> str | None:
        value = self._front.get("model")
        if value is None or (isinstance(value, str) and value in USUAL_MODEL):
            return None
        if not isinstance(value, str) or not value.strip():
            self.report("model", f"must be the name of a model or inherit, not {_shown(value)}", left_out=False)
            return None
        return value

    def mode(self) -> PermissionMode | None:
        value = self._front.get("permissionMode")
        known = [mode.value for mode in PermissionMode]
        if value is None:
            return None
        if value not in known:
            self.report("permissionMode", f"must be one of {', '.join(known)}, not {_shown(value)}")
            return None
        return PermissionMode(value)

    def count(self, field: str) -> int | None:
        value = self._front.get(field)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            self.report(field, f"must be a whole number from 1, not {_shown(value)}")
            return None
        return value

    def hooks(self) -> tuple[HookDefinition, ...]:
        value = self._front.get("hooks")
        if value is None:
            return ()
        if not isinstance(value, Mapping):
            self.report("hooks", f"must be an object of events, not {type_name(value)}")
            return ()
        for event in cast(Mapping[str, Any], value):
            if event in EVENTS and EVENTS[HookEvent(event)].in_subagent == "never":
                self.report(f"hooks.{event}", "never runs in a subagent", left_out=False)
        loaded = hooks_as_settings(self._name, cast(Mapping[str, Any], value), self._source).hooks
        if loaded.entries > MAX_HOOKS:
            self.report("hooks", f"there are more than {MAX_HOOKS:,}; remove some")
        found = loaded.found
        for one in found:
            if isinstance(one, Issue):
                path = ".".join(map(str, one.path))
                self.report(path, one.message, left_out=one.broken, line=one.line)
        return tuple(one for one in found if isinstance(one, HookDefinition))

    def check_keys(self) -> None:
        for key in map(str, self._front):
            if key in _KEYS and self._front[key] is None and self._source.layer is not Layer.CODE:
                self.report(key, "has no value")
            elif key in _WITHOUT_EFFECT:
                self.report(key, "has no effect here", left_out=False)
            elif key not in (*_KEYS, *_SILENT):
                meant = did_you_mean(key, _KEYS)  # perhaps a limit, without which the subagent could do more
                self.report(key, f"is not a known key{meant}", left_out=bool(meant))


def _here(event: str) -> str:
    """The event under which a hook of a subagent runs."""
    instead = EVENTS[HookEvent(event)].in_subagent if event in EVENTS else "same"
    return event if instead in ("same", "never") else instead


def _shown(value: object) -> str:
    return f'"{value:.60}"' if isinstance(value, str) else type_name(value)
