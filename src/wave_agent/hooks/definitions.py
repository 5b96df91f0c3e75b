"""A hook definition: one hook from the settings, validated and with all defaults filled in."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from wave_agent.formats.strict_json import Path
from wave_agent.hooks.dialects import DIALECTS, Dialect, DialectRow
from wave_agent.hooks.events import EVENTS, HookEvent, OnFailure
from wave_agent.hooks.execution import BodyFormat, HookKind, ServerCall
from wave_agent.hooks.matcher import Matcher
from wave_agent.hooks.verdicts import Role
from wave_agent.lazy_regex import lazy_regex
from wave_agent.rules.rule import Places, Rule

if TYPE_CHECKING:
    from wave_agent.effects.values import Effects  # a session without conditions never needs it

# Excludes characters that are special in a shell, and `=`, which would turn a bare word into an assignment.
_BARE_PATH = lazy_regex(r"[^\s\"'`$\\;|&<>()\[\]{}*?!#=^]*/[^\s\"'`$\\;|&<>()\[\]{}*?!#=^]*")


def is_bare_path(command: str) -> bool:
    """Whether the command is a single path without special shell characters."""
    return _BARE_PATH.fullmatch(command) is not None


_PROJECT_DIR = lazy_regex(r"\$\{(?:CLAUDE|WAVE)_PROJECT_DIR\}")


def with_project(text: str, project: str) -> str:
    """Fill in the project directory, in text that no shell expands."""
    return _PROJECT_DIR.sub(lambda _: project, text)


class Layer(StrEnum):
    """Where a setting comes from, in configuration order. Here and not in `settings`, since hooks of a project are
    treated differently from the user's."""

    MANAGED = "managed"
    CODE = "code"
    USER = "user"
    PROJECT = "project"
    LOCAL = "local"
    FLAG = "flag"


LAYERS = tuple(Layer)


class Mode(StrEnum):
    ENFORCE = "enforce"
    SHADOW = "shadow"


class Phase(StrEnum):
    REWRITE = "rewrite"


class HookDefinition(Struct, frozen=True, kw_only=True):
    """One hook, validated and complete."""

    event: HookEvent
    layer: Layer
    source: str
    path: Path
    line: int | None
    position: int = 0
    """Position in the configuration, across all layers."""
    group: int
    """Shared by the hooks of one matcher group."""
    matcher: Matcher
    sequential: bool
    phase: Phase | None
    name: str
    kind: HookKind = HookKind.COMMAND
    command: str = ""
    """What runs, depending on the kind: a command, `FILE:FUNCTION`, a URL, `server/tool` or a prompt. Empty for a
    function."""
    args: tuple[str, ...] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    header_env: tuple[str, ...] = ()
    """The variables its headers may use, if it was written for another agent."""
    body_format: BodyFormat = BodyFormat.PLAIN
    call: ServerCall | None = None
    """What it calls, if it is a tool of an MCP server."""
    model: str = ""
    """The model that a prompt is for; empty for the usual one."""
    continue_on_block: bool = True
    """After a block by the model that it asks, the turn goes on."""
    function: Callable[..., Any] | None = None
    condition: Rule | None = None
    timeout: float
    is_async: bool
    rewakes: bool = False
    """Async, but if it blocks, the model gets the reason."""
    on_failure: OnFailure
    mode: Mode
    rollout: float | None = None
    """The share of sessions, from 0 to 1, in which it is enforced; in the others its mode is shadow."""
    enabled: bool
    status_message: str
    once: bool = False
    """Runs only the first time it applies in a session."""
    dialect: Dialect = Dialect.WAVE
    """The agent it was written for; `columns` has the differences."""
    plugin_root: str = ""
    """The directory of the plugin it belongs to."""
    plugin_data: str = ""
    """The directory where that plugin can store its data."""
    inner: str = ""
    """The subdirectory of the project whose settings define it, relative to the project; empty for the project."""
    agent: str = ""
    """The type of subagent whose definition it belongs to, and in which alone it runs."""

    @property
    def gets_arguments(self) -> bool:
        """Whether it receives the event's main values as arguments: for a bare path, if its dialect does that."""
        may = self.columns.has_arguments and self.kind is HookKind.COMMAND and self.args is None
        return may and is_bare_path(self.command)

    @property
    def columns(self) -> DialectRow:
        """The properties of its dialect."""
        return DIALECTS[self.dialect]

    def may_apply_to(self, tool: str) -> bool:
        """Whether it runs for some calls of this tool, by matcher and `if`."""
        rule = self.condition
        if rule is None or (rule.pattern is not None and rule.is_about_effects):
            return self.matcher.matches(tool)
        return self.matcher.matches(tool) and rule.names(tool)

    @property
    def role(self) -> Role:
        """How much of its verdict applies."""
        if self.mode is Mode.SHADOW:
            return Role.SHADOW
        return Role.REWAKE if self.rewakes else Role.ASYNC if self.is_async else Role.ENFORCE

    def why_not(
        self, payload: Mapping[str, Any], places: Places, effects: "Callable[[], Effects] | None" = None
    ) -> str | None:
        """Why this hook does not apply to an event with this payload; None if it does.

        `effects` returns what the call would do; without it, that is not known.
        """
        if not self.enabled:
            return "it is disabled (enabled: false)"
        targets = EVENTS[self.event].targets_in(payload)
        if not any(map(self.matcher.matches, targets)):
            return f'its matcher ({self.matcher.explain()}) does not match "{targets[0]}"'
        if self.names_call(payload, places) or self._is_about(effects, places):
            return None
        about = "what the call does" if self.condition and self.condition.is_about_effects else "the input"
        return f'its condition "{self.condition.text if self.condition else ""}" does not match {about}'

    def names_call(self, payload: Mapping[str, Any], places: Places) -> bool:
        """Whether its condition, if it has one, matches the tool and its input."""
        rule = self.condition
        tool_input: Mapping[str, Any] = payload.get("tool_input") or {}
        names = EVENTS[self.event].targets_in(payload)
        return rule is None or any(rule.matches(name, tool_input, places) for name in names)

    def _is_about(self, effects: "Callable[[], Effects] | None", places: Places) -> bool:
        """Whether its condition is about something that the call does, or may do."""
        if self.condition is None or not self.condition.is_about_effects:
            return False
        if effects is None:
            return True
        from wave_agent.rules.conditions import may_apply  # lazy: few hooks have such a condition

        return may_apply(self.condition, effects(), places)

    @property
    def shown_command(self) -> str:
        """The command as shown to users and in the journal."""
        return self.command if self.kind is not HookKind.FUNCTION else f"python:{self.name}"
