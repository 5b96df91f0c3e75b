"""An agent that another agent's tool has started: it inherits mode and limits, and no flag of its own loosens them.

What is inherited travels in one environment variable. A command can take that away from its children, or set another
one, so on Linux the environments of all processes above are looked at as well, and the strictest holds. A process that
has cut itself loose from all of them is out of sight.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.hooks.config import SettingsSource
from wave_agent.hooks.pinned import is_pinned
from wave_agent.permissions.decision import NOT_LOOSER, PermissionMode
from wave_agent.settings.layers import only_restrictions
from wave_agent.settings.trust import Record
from wave_agent.system.ancestry import VARIABLE, handed_down
from wave_agent.system.orphans import birth_of, environment_of
from wave_agent.system.project import Project
from wave_agent.system.real_files import is_below

_LARGEST = 64 * 1024
"""Bytes: the system takes 128 KiB for one variable."""


class Inheritance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What holds for every agent below this one."""

    mode: PermissionMode
    home: str
    project: str
    directories: tuple[str, ...]
    """Where it may work, real paths."""
    inner: tuple[str, ...] = ("",)
    """The directories of the project whose settings `record` speaks of, relative to it."""
    max_turns: int | None = None
    overlays: tuple[Any, ...] = ()
    """Settings that the user named: paths and objects."""
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    strict: bool = False
    project_hooks: bool = True
    sandbox: bool = False
    record: Record = Record()
    """What is trusted in the project."""
    added_managed: str | None = None
    plugins: tuple[str, ...] = ()
    claude_home: str = ""
    """Where the user keeps settings for other agents."""
    user_home: str = ""
    """What `~` means in rules and settings."""
    files: Mapping[str, str | None] = {}
    """Settings files that are not the project's → what was in them: guards stand there too."""
    environment: Mapping[str, str] = {}
    """Variables that steer the programs of hooks."""
    process: tuple[int, int] | None = None
    """The agent's own: number, and when it was born. Its environment is that of the hooks, if it can be read."""
    hidden: str = ""
    """What cannot be handed down. An agent that would have to do without it does not start."""

    def variable(self) -> dict[str, str]:
        """For the environment of tools."""
        text = msgspec.json.encode(self).decode()
        if len(text.encode()) > _LARGEST:
            small = Inheritance(
                mode=self.mode,
                home=self.home,
                project=self.project,
                directories=self.directories,
                hidden="settings that are too large to be handed down",
            )
            text = msgspec.json.encode(small).decode()
        return {VARIABLE: text}

    def restricted_mode(self, asked: PermissionMode) -> PermissionMode:
        return asked if asked in NOT_LOOSER[self.mode] else self.mode

    def restricted_turns(self, asked: int | None) -> int | None:
        limits = [limit for limit in (asked, self.max_turns) if limit is not None]
        return min(limits, default=None)

    def restricted_directories(self, asked: Sequence[str]) -> tuple[str, ...]:
        """The first of those that were asked for stays the first."""
        return _common(asked, self.directories)

    def require_inside(self, directory: str) -> None:
        """Raises `SettingsError` if an agent would begin where the agent above may not work."""
        if not any(is_below(directory, base) for base in self.directories):
            where = ", ".join(self.directories)
            raise SettingsError(f"The agent that started this one may not work in {directory}, only in {where}.")

    def require_same_guards(self, user_home: str, digest: Callable[[str], str | None]) -> None:
        """Raises `SettingsError` if this agent would read other guards than the one above has."""
        if self.user_home and user_home != self.user_home:
            raise SettingsError(
                f"HOME is {user_home}, and {self.user_home} for the agent that started this one: rules would mean "
                "other files, so nothing is started."
            )
        changed = [name for name, content in self.files.items() if digest(name) != content]
        if changed:
            raise SettingsError(
                f"{', '.join(changed)} has changed since the agent that started this one has begun, so nothing can be "
                "started below it. Start that one anew."
            )

    def project_for(self, found: Project) -> Project:
        """The project of an agent that would begin here. Neither another repository inside, nor a worktree, nor
        settings of its own take it out of the project above. Raises `SettingsError` where its guards cannot hold."""
        if found.directory == self.project:
            return found
        if is_below(found.start, self.project):
            return Project(self.project, found.start, min(found.root, self.project, key=len))
        if self.record.hooks:
            raise SettingsError(
                f"The hooks of {self.project} hold for the agent that started this one. They would not in "
                f"{found.start}, so nothing is started there."
            )
        return found

    def hook_environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """What hooks run with: the environment of the agent above, as far as it can be known. What a command sets for
        an agent that it starts must not switch guards off."""
        above = _environment_of(self.process)
        kept = {name: value for name, value in own.items() if not _steers(name)} if above is None else above
        return {**kept, **self.environment, "WAVE_HOME": self.home}

    def require_complete(self) -> None:
        """Raises `SettingsError` if a guard of the agent above could not be handed down."""
        if self.hidden:
            raise SettingsError(
                f"The agent that started this one has {self.hidden}, so nothing can be started below it."
            )


def inherited(environment: Mapping[str, str]) -> Inheritance | None:
    """What the agents above hand down, if there are any. Raises `SettingsError` if that cannot be read.

    A command can set the variable anew for its children, so every one that is found counts, and the strictest holds.
    """
    try:
        found = [msgspec.json.decode(text, type=Inheritance) for text in handed_down(environment)]
    except msgspec.DecodeError as error:
        raise SettingsError(
            f"{VARIABLE} cannot be read ({error}); it belongs to the agent that started this."
        ) from None
    return reduce(_both, reversed(found)) if found else None


def _both(outer: Inheritance, inner: Inheritance) -> Inheritance:
    """What holds below two agents. Where only one can be believed, it is the outer one."""
    return replace(
        outer,
        mode=outer.restricted_mode(inner.mode),
        directories=_common(outer.directories, inner.directories),
        max_turns=outer.restricted_turns(inner.max_turns),
        overlays=(*outer.overlays, *(one for one in inner.overlays if one not in outer.overlays)),
        deny=tuple(dict.fromkeys((*outer.deny, *inner.deny))),
        ask=tuple(dict.fromkeys((*outer.ask, *inner.ask))),
        strict=outer.strict or inner.strict,
        project_hooks=outer.project_hooks or inner.project_hooks,
        sandbox=outer.sandbox or inner.sandbox,
        hidden=outer.hidden or inner.hidden,
    )


_STEERING = frozenset(
    {
        *("TMPDIR", "EDITOR", "PAGER", "LANG", "LANGUAGE", "SHELL"),
    }
)
"""Beside those that decide which code a hook runs."""
_STEERING_PREFIXES = (
    *("GCONV_", "LC_", "GIT_", "XDG_", "JQ_"),
    *("PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "npm_", "JAVA_", "JDK_"),
)
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASS")


def _steers(name: str) -> bool:
    return is_pinned(name) or name in _STEERING or name.startswith(_STEERING_PREFIXES)


def steering(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables by which somebody else's program can be put in the place of the one that a hook means.

    What looks like a secret is not handed down: a command that it was taken away from would get it back.
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
    """What this process began with; None if it is not there any more, or cannot be looked at."""
    if process is None or birth_of(process[0]) != process[1]:
        return None
    pairs = (os.fsdecode(entry).partition("=") for entry in environment_of(process[0]) if b"=" in entry)
    return {name: value for name, _, value in pairs} or None


def _common(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The directories that lie in one of these and in one of those."""
    pairs = [(one, other) for one in some for other in others]
    found = [one for one, other in pairs if is_below(one, other)] + [b for a, b in pairs if is_below(b, a)]
    return tuple(dict.fromkeys(found))


def restricted(overlays: Sequence[SettingsSource]) -> tuple[list[dict[str, Any]], list[str]]:
    """Of settings that were named to an agent below another one: what tightens, and the names of the rest."""
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
