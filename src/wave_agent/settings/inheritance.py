"""An agent started by another agent's tool inherits its mode and limits; none of its own flags can loosen them.

The inheritance travels in one environment variable. A command can remove or replace that variable for its children, so
on Linux the environments of all parent processes are checked too, and the strictest wins. A process that has detached
itself from all of them is not detected.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.hooks.pinned import is_pinned
from wave_agent.permissions.decision import NOT_LOOSER, PermissionMode
from wave_agent.settings.hook_entries import SettingsSource
from wave_agent.settings.layers import only_restrictions
from wave_agent.settings.trust import Record
from wave_agent.system.ancestry import VARIABLE, handed_down
from wave_agent.system.orphans import birth_of, environment_of
from wave_agent.system.project import Project
from wave_agent.system.real_files import is_below

_LARGEST = 64 * 1024
"""Bytes: the system allows 128 KiB for one variable."""


class Budget(Struct, frozen=True, omit_defaults=True):
    """What an agent and all agents below it may use together."""

    file: str
    """Where they write down what they have used. `agent.shared_budget` reads and writes it."""
    max_turns: int | None = None
    max_cost: float | None = None


class Inheritance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits that apply to every agent below this one."""

    mode: PermissionMode
    home: str
    project: str
    directories: tuple[str, ...]
    """Directories it may work in, as real paths."""
    inner: tuple[str, ...] = ("",)
    """The project directories whose settings `record` covers, relative to the project."""
    max_turns: int | None = None
    max_cost: float | None = None
    """US dollars."""
    budgets: tuple[Budget, ...] = ()
    """Of the agents above and of this one, which is the last."""
    overlays: tuple[Any, ...] = ()
    """Settings named by the user: paths and objects."""
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    strict: bool = False
    share: float = 0.0
    """What hooks that are rolled out are compared with: the share of the outermost session. 0: all are enforced."""
    project_hooks: bool = True
    sandbox: bool = False
    record: Record = Record()
    """What is trusted in the project."""
    added_managed: str | None = None
    plugins: tuple[str, ...] = ()
    mcp_config: tuple[str, ...] = ()
    """Files with MCP servers that the user named."""
    strict_mcp_config: bool = False
    """No other servers are used."""
    claude_home: str = ""
    """The user's directory of settings for other agents."""
    user_home: str = ""
    """What `~` means in rules and settings."""
    files: Mapping[str, str | None] = {}
    """Settings files outside the project → digest of their content: they hold guards too."""
    environment: Mapping[str, str] = {}
    """Variables that affect which programs hooks run."""
    process: tuple[int, int] | None = None
    """The agent's own process: id and start time. Hooks use its environment, if it can be read."""
    hidden: str = ""
    """Settings that cannot be handed down. A child agent that would have to run without them does not start."""

    def variable(self) -> dict[str, str]:
        """For the environment of tools."""
        text = msgspec.json.encode(self).decode()
        if len(text.encode()) > _LARGEST:
            small = Inheritance(
                mode=self.mode,
                home=self.home,
                project=self.project,
                directories=self.directories,
                budgets=self.budgets,
                share=self.share,
                hidden="settings that are too large to hand down",
            )
            text = msgspec.json.encode(small).decode()
        return {VARIABLE: text}

    def restricted_mode(self, asked: PermissionMode) -> PermissionMode:
        return asked if asked in NOT_LOOSER[self.mode] else self.mode

    def restricted_turns(self, asked: int | None) -> int | None:
        limits = [limit for limit in (asked, self.max_turns) if limit is not None]
        return min(limits, default=None)

    def restricted_cost(self, asked: float | None) -> float | None:
        limits = [limit for limit in (asked, self.max_cost) if limit is not None]
        return min(limits, default=None)

    def restricted_directories(self, asked: Sequence[str]) -> tuple[str, ...]:
        """The first of the requested directories stays first."""
        return _common(asked, self.directories)

    def require_inside(self, directory: str) -> None:
        """Raises `SettingsError` if the agent would start where its parent may not work."""
        if not any(is_below(directory, base) for base in self.directories):
            where = ", ".join(self.directories)
            raise SettingsError(f"The parent agent may not work in {directory}, only in {where}.")

    def require_same_guards(self, user_home: str, digest: Callable[[str], str | None]) -> None:
        """Raises `SettingsError` if this agent would read other guards than its parent."""
        if self.user_home and user_home != self.user_home:
            raise SettingsError(
                f"Not started: HOME is {user_home}, but {self.user_home} for the parent agent, so rules would apply to "
                "other files."
            )
        changed = [name for name, content in self.files.items() if digest(name) != content]
        if changed:
            raise SettingsError(
                f"Not started: {', '.join(changed)} has changed since the parent agent started. "
                "Restart the parent agent."
            )

    def project_for(self, found: Project) -> Project:
        """The project of an agent that starts here. Neither a nested repository, nor a worktree, nor separate settings
        take it out of the parent's project. Raises `SettingsError` if the parent's guards cannot apply."""
        if found.directory == self.project:
            return found
        if is_below(found.start, self.project):
            return Project(self.project, found.start, min(found.root, self.project, key=len))
        if self.record.hooks:
            raise SettingsError(
                f"Not started: the parent agent is bound by the hooks of {self.project}, and they would not run in "
                f"{found.start}."
            )
        return found

    def hook_environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """The environment of hooks: that of the parent agent, if it can be read. Variables that a command sets for an
        agent it starts must not disable guards."""
        above = _environment_of(self.process)
        kept = {name: value for name, value in own.items() if not _steers(name)} if above is None else above
        return {**kept, **self.environment, "WAVE_HOME": self.home}

    def require_complete(self) -> None:
        """Raises `SettingsError` if a guard of the parent agent could not be handed down."""
        if self.hidden:
            raise SettingsError(f"The parent agent has {self.hidden}, so it cannot start other agents.")


def inherited(environment: Mapping[str, str]) -> Inheritance | None:
    """The limits handed down by parent agents, if there are any. Raises `SettingsError` if they cannot be read.

    A command can overwrite the variable for its children, so all variables found are combined, and the strictest wins.
    """
    try:
        found = [msgspec.json.decode(text, type=Inheritance) for text in handed_down(environment)]
    except msgspec.DecodeError as error:
        raise SettingsError(
            f"{VARIABLE} cannot be read ({error}); it belongs to the agent that started this."
        ) from None
    return reduce(_both, reversed(found)) if found else None


def _both(outer: Inheritance, inner: Inheritance) -> Inheritance:
    """The limits that apply below two agents. If only one can be believed, it is the outer one."""
    return replace(
        outer,
        mode=outer.restricted_mode(inner.mode),
        directories=_common(outer.directories, inner.directories),
        max_turns=outer.restricted_turns(inner.max_turns),
        max_cost=outer.restricted_cost(inner.max_cost),
        budgets=tuple(dict.fromkeys((*outer.budgets, *inner.budgets))),
        overlays=(*outer.overlays, *(one for one in inner.overlays if one not in outer.overlays)),
        deny=tuple(dict.fromkeys((*outer.deny, *inner.deny))),
        ask=tuple(dict.fromkeys((*outer.ask, *inner.ask))),
        strict=outer.strict or inner.strict,
        share=min(outer.share, inner.share),
        project_hooks=outer.project_hooks or inner.project_hooks,
        sandbox=outer.sandbox or inner.sandbox,
        strict_mcp_config=outer.strict_mcp_config or inner.strict_mcp_config,
        hidden=outer.hidden or inner.hidden,
    )


_STEERING = frozenset(
    {
        *("TMPDIR", "EDITOR", "PAGER", "LANG", "LANGUAGE", "SHELL"),
    }
)
"""In addition to those that decide which code a hook runs."""
_STEERING_PREFIXES = (
    *("GCONV_", "LC_", "GIT_", "XDG_", "JQ_"),
    *("PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "npm_", "JAVA_", "JDK_"),
)
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASS")


def _steers(name: str) -> bool:
    return is_pinned(name) or name in _STEERING or name.startswith(_STEERING_PREFIXES)


def steering(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that can replace the program a hook is meant to run.

    Anything that looks like a secret is not handed down: a command that was denied it would get it back.
    """
    return {
        name: value
        for name, value in environment.items()
        if _steers(name) and not any(word in name.upper() for word in _SECRETS)
    }


def this_process() -> tuple[int, int] | None:
    """For `Inheritance.process`."""
    born = birth_of(os.getpid())
    return None if born is None else (os.getpid(), born)


def _environment_of(process: tuple[int, int] | None) -> dict[str, str] | None:
    """The environment this process started with; None if it has exited or cannot be inspected."""
    if process is None or birth_of(process[0]) != process[1]:
        return None
    pairs = (os.fsdecode(entry).partition("=") for entry in environment_of(process[0]) if b"=" in entry)
    return {name: value for name, _, value in pairs} or None


def _common(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The directories that are below one of `some` and one of `others`."""
    pairs = [(one, other) for one in some for other in others]
    found = [one for one, other in pairs if is_below(one, other)] + [b for a, b in pairs if is_below(b, a)]
    return tuple(dict.fromkeys(found))


def restricted(overlays: Sequence[SettingsSource]) -> tuple[list[dict[str, Any]], list[str]]:
    """For settings named to a child agent: the parts that tighten, and the names of the rest."""
    kept: list[dict[str, Any]] = []
    dropped: list[str] = []
    for source in overlays:
        restrictions, names = only_restrictions(source)
        value: Any = source.document.value
        strict = {"strictHooks": True} if value.get("strictHooks") is True else {}
        kept.append({**restrictions.document.value, **strict})
        dropped += [name for name in names if name != "strictHooks" and _says_something(value, name)]
    return kept, dropped


def _says_something(settings: Any, name: str) -> bool:
    for step in name.split("."):
        settings = settings[step]
    return settings not in ([], {})
