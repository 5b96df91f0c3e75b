"""One hook as the settings define it, checked and complete."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from wave_agent.formats.strict_json import Path, show_path
from wave_agent.hooks.dialects import DIALECTS, Dialect, DialectRow
from wave_agent.hooks.events import EVENTS, HookEvent, OnFailure
from wave_agent.hooks.execution import BodyFormat, HookKind
from wave_agent.hooks.matcher import Matcher
from wave_agent.rules.rule import Places, Rule
from wave_agent.text import strip_controls

# Characters with a meaning for the shell, and `=`, which would make an assignment of a bare word.
_BARE_PATH = re.compile(r"[^\s\"'`$\\;|&<>()\[\]{}*?!#=^]*/[^\s\"'`$\\;|&<>()\[\]{}*?!#=^]*")


def is_bare_path(command: str) -> bool:
    """The command is one path, without anything that means something to a shell."""
    return _BARE_PATH.fullmatch(command) is not None


_PROJECT_DIR = re.compile(r"\$\{(?:CLAUDE|WAVE)_PROJECT_DIR\}")


def with_project(text: str, project: str) -> str:
    """What no shell will read, with the project's directory put in."""
    return _PROJECT_DIR.sub(lambda _: project, text)


class Layer(StrEnum):
    """Where a setting comes from, in configuration order."""

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


class Issue(Struct, frozen=True, kw_only=True):
    """One finding in the settings."""

    source: str
    path: Path
    message: str
    line: int | None = None
    broken: bool = True
    """False: a warning; the entry works."""
    fatal: bool = False
    """Starting would lose a guard that must not be lost."""

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return strip_controls(f"{place}: {show_path(self.path)}: {self.message}")


class HookDefinition(Struct, frozen=True, kw_only=True):
    """One hook, checked and complete."""

    event: HookEvent
    layer: Layer
    source: str
    path: Path
    line: int | None
    position: int = 0
    """Place in the configuration, over all layers."""
    group: int
    """Hooks of one matcher group share it."""
    matcher: Matcher
    sequential: bool
    phase: Phase | None
    name: str
    kind: HookKind = HookKind.COMMAND
    command: str = ""
    """What runs, as its kind has it: a command, `FILE:FUNCTION`, a URL. Empty for a function."""
    args: tuple[str, ...] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    header_env: tuple[str, ...] = ()
    """The variables that its headers may name, if it was written for another agent."""
    body_format: BodyFormat = BodyFormat.PLAIN
    function: Callable[..., Any] | None = None
    condition: Rule | None = None
    timeout: float
    is_async: bool
    on_failure: OnFailure
    mode: Mode
    enabled: bool
    status_message: str
    once: bool = False
    """Runs the first time that it applies in a session, and not again."""
    dialect: Dialect = Dialect.WAVE
    """For which agent it was written: its columns say what differs."""
    plugin_root: str = ""
    """The directory of the plugin that it belongs to."""
    plugin_data: str = ""
    """Where that plugin may keep what it has to remember."""
    inner: str = ""
    """The directory whose settings it stands in, if that lies below the project's own: relative to it."""

    @property
    def gets_arguments(self) -> bool:
        """A command that is one bare path is given the event's main values as arguments, if its dialect has that."""
        may = self.columns.has_arguments and self.kind is HookKind.COMMAND and self.args is None
        return may and is_bare_path(self.command)

    @property
    def columns(self) -> DialectRow:
        """What its dialect says."""
        return DIALECTS[self.dialect]

    def why_not(self, payload: Mapping[str, Any], places: Places) -> str | None:
        """Why this hook does not apply to an event with this payload; None if it does."""
        if not self.enabled:
            return "it is switched off (enabled: false)"
        target = str(payload.get(EVENTS[self.event].target or "", ""))
        if not self.matcher.matches(target):
            return f'its matcher ({self.matcher.explain()}) does not match "{target}"'
        if self.condition and not self.condition.matches(target, payload.get("tool_input") or {}, places):
            return f'its condition "{self.condition.text}" does not match the input'
        return None

    @property
    def shown_command(self) -> str:
        """The command for people and the journal."""
        return self.command if self.kind is not HookKind.FUNCTION else f"python:{self.name}"
