"""An agent that another agent's tool has started: it inherits mode and limits, and no flag of its own loosens them.

What is inherited travels in one environment variable. A command can take that away from its children, or set another
one, so on Linux the environments of all processes above are looked at as well, and the strictest holds. A process that
has cut itself loose from all of them is out of sight.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.ancestry import VARIABLE, handed_down
from wave_agent.errors import SettingsError
from wave_agent.hooks.config import SettingsSource
from wave_agent.permissions import NOT_LOOSER, PermissionMode
from wave_agent.settings import only_restrictions
from wave_agent.trust import Record

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
    pinned: Mapping[str, str] = {}
    """Variables that decide which code a hook runs, see `hooks.pinned`."""
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


def _common(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The directories that lie in one of these and in one of those."""
    pairs = [(one, other) for one in some for other in others]
    found = [one for one, other in pairs if is_below(one, other)] + [b for a, b in pairs if is_below(b, a)]
    return tuple(dict.fromkeys(found))


def is_below(path: str, base: str) -> bool:
    """Or the same."""
    return path == base or path.startswith(base.rstrip("/") + "/")


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
